--- admit.lua: admit a buyer through one shard of a sale's gate, or say why not.
--- @key   gate             hash    budget, generation, second, admitted, dry_until_ms, holds; of the last top-up: filled, left, outstanding, topped_up_ms; what the budget was given: issued, since_ms
--- @key   lock             string  until when this buyer waits; the only key with a time to live
--- @arg   tickets          integer
--- @arg   now_ms           integer
--- @arg   user_lock_ms     integer
--- @arg   rate_per_second  integer
--- @arg   first_budget     integer
--- @arg   first_left       integer
--- @arg   generation       string  the generation that was found exhausted; empty if none was
--- @arg   budget           integer the shard's share of what is left, in tickets
--- @arg   left             integer the shard's part of the tickets that are left
--- @arg   dry_ms           integer
--- @arg   holds            string  held | none
--- @reply admitted
--- @reply dry              retry_ms holds
--- @reply locked           retry_ms
--- @reply too_fast         retry_ms
--- @reply exhausted        generation

local gate_key, lock_key = unpack(KEYS, 1, 2)
local tickets, now_ms, user_lock_ms, rate, first_budget, first_left = unpack(ARGV, 1, 6)
local found_exhausted, share, left, dry_ms, new_holds = unpack(ARGV, 7, 11)
local now = tonumber(now_ms)
-- Least time between two top-ups.
local TOP_UP_MS = 1000

local gate = call('HMGET', gate_key,
  'budget', 'generation', 'second', 'admitted', 'dry_until_ms', 'holds')
local budget, generation = gate[1], gate[2] or '0'
local dry_until, holds = tonumber(gate[5] or ''), gate[6] or 'none'
if found_exhausted == generation then
  -- Of many callers that saw it exhausted, one tops up: with the share, less what is outstanding.
  local last = call('HMGET', gate_key, 'filled', 'left', 'outstanding', 'topped_up_ms', 'issued', 'since_ms')
  local granted = budget and (last[1] or budget) - budget or 0
  local reserved = math.max((last[2] or 0) - left, 0)
  local outstanding, topped_up = tonumber(last[3] or 0), last[4] or now - TOP_UP_MS
  local seconds = math.max(math.floor((now - topped_up) / 1000), 1)
  local earlier = math.floor(math.max(outstanding - reserved, 0) / 2 ^ seconds)
  local later = math.max(granted - math.max(reserved - outstanding, 0), 0)
  local before, issued = tonumber(budget or 0), last[5]
  -- Tokens that were added by hand while the caller read what is left stay.
  budget = math.max(share - (earlier + later), 0) + math.max(before, 0)
  issued = issued and issued + budget - before or budget
  generation = string.format('%.0f', generation + 1)
  dry_until = budget <= 0 and now + dry_ms or nil
  holds = tonumber(share) > 0 and 'held' or new_holds
  call('HSET', gate_key, 'budget', budget, 'generation', generation, 'dry_until_ms', dry_until or '',
    'holds', holds, 'filled', budget, 'left', left, 'outstanding', earlier + later, 'topped_up_ms', now_ms,
    'issued', issued, 'since_ms', last[6] or now_ms)
elseif not budget then
  budget = first_budget
  call('HSET', gate_key, 'budget', budget, 'filled', budget, 'left', first_left,
    'issued', budget, 'since_ms', now_ms)
end

if dry_until and dry_until > now then
  return { 'dry', dry_until - now, holds }
end
local locked_until = tonumber(call('GET', lock_key) or '')
if locked_until and locked_until > now then
  return { 'locked', locked_until - now }
end
local second = math.floor(now / 1000)
local admitted = tonumber(gate[3] or 0) == second and tonumber(gate[4] or 0) or 0
if admitted >= tonumber(rate) then
  return { 'too_fast', (second + 1) * 1000 - now }
elseif tonumber(budget) <= 0 then
  local next_top_up = (call('HGET', gate_key, 'topped_up_ms') or now - TOP_UP_MS) + TOP_UP_MS
  if next_top_up > now then
    return { 'dry', next_top_up - now, 'held' }
  end
  return { 'exhausted', generation }
end
call('HSET', gate_key, 'budget', budget - tickets, 'second', second, 'admitted', admitted + 1)
if tonumber(user_lock_ms) > 0 then
  call('SET', lock_key, string.format('%.0f', now + user_lock_ms), 'PX', user_lock_ms)
end
return { 'admitted' }
