--- add_tokens.lua: add tokens to one shard of a sale's gate by hand, once for each id.
--- @key   gate             hash    as admit.lua has it; by_hand, additions (their number), and +id to the tokens of each over all shards
--- @arg   id               string
--- @arg   tokens           integer this shard's part
--- @arg   total            integer over all shards
--- @arg   max_additions    integer
--- @arg   first_budget     integer
--- @arg   first_left       integer
--- @arg   now_ms           integer
--- @reply added
--- @reply known
--- @reply differs          total
--- @reply too_many

local gate_key = KEYS[1]
local id, tokens, total, max_additions, first_budget, first_left, now_ms = unpack(ARGV, 1, 7)
local addition = '+' .. id

local gate = call('HMGET', gate_key, addition, 'additions', 'budget', 'issued', 'by_hand', 'filled')
local known, additions, budget = gate[1], tonumber(gate[2] or 0), gate[3]
if known then
  return known == total and { 'known' } or { 'differs', known }
elseif additions >= tonumber(max_additions) then
  return { 'too_many' }
end
local issued, filled = gate[4], gate[6] or 0
if not budget then
  budget, issued, filled = first_budget, first_budget, first_budget
  call('HSET', gate_key, 'budget', budget, 'filled', filled, 'left', first_left,
    'issued', issued, 'since_ms', now_ms)
end
call('HSET', gate_key, addition, total, 'additions', additions + 1)
if tonumber(tokens) > 0 then
  -- What the last buyer took too many is no debt of whoever comes now.
  local after = math.max(tonumber(budget), 0) + tokens
  local gained = after - budget
  if not issued then
    -- An earlier release gave the shard its budget, and did not count.
    issued, gained = after, 0
    call('HSET', gate_key, 'since_ms', now_ms)
  end
  call('HSET', gate_key, 'budget', after, 'filled', filled + after - budget, 'issued', issued + gained,
    'by_hand', (gate[5] or 0) + tokens, 'dry_until_ms', '')
end
return { 'added' }
