--- admit.lua: admit a buyer through one shard of a sale's gate, or say why not.
--- @key   gate             hash    budget, generation, second, admitted, dry_until_ms, holds
--- @key   lock             string  until when this buyer waits; the only key with a time to live
--- @arg   tickets          integer
--- @arg   now_ms           integer
--- @arg   user_lock_ms     integer
--- @arg   rate_per_second  integer
--- @arg   first_budget     integer
--- @arg   generation       string  the generation that was found exhausted; empty if none was
--- @arg   budget           integer its new budget
--- @arg   dry_ms           integer
--- @arg   holds            string  held | none
--- @reply admitted
--- @reply dry              retry_ms holds
--- @reply locked           retry_ms
--- @reply too_fast         retry_ms
--- @reply exhausted        generation

local gate_key, lock_key = unpack(KEYS, 1, 2)
local tickets, now_ms, user_lock_ms, rate, first_budget = unpack(ARGV, 1, 5)
local found_exhausted, new_budget, dry_ms, new_holds = unpack(ARGV, 6, 9)
local now = tonumber(now_ms)

local gate = call('HMGET', gate_key,
  'budget', 'generation', 'second', 'admitted', 'dry_until_ms', 'holds')
local budget, generation = gate[1], gate[2] or '0'
local dry_until, holds = tonumber(gate[5] or ''), gate[6] or 'none'
if found_exhausted == generation then
  -- Of many callers that saw it exhausted, one tops up.
  generation = tostring(call('HINCRBY', gate_key, 'generation', 1))
  budget, holds = new_budget, new_holds
  dry_until = tonumber(budget) <= 0 and now + tonumber(dry_ms) or nil
  call('HSET', gate_key, 'budget', budget, 'dry_until_ms', dry_until or '', 'holds', holds)
elseif not budget then
  budget = first_budget
  call('HSET', gate_key, 'budget', budget)
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
  return { 'exhausted', generation }
end
call('HSET', gate_key, 'budget', budget - tickets, 'second', second, 'admitted', admitted + 1)
if tonumber(user_lock_ms) > 0 then
  call('SET', lock_key, string.format('%.0f', now + user_lock_ms), 'PX', user_lock_ms)
end
return { 'admitted' }
