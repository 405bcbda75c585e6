--- recount.lua: correct how many tickets a buyer has, unless that has changed since the caller looked.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[line]      counters  how often seats of each block of 32 were given back
--- @arg   epoch            string
--- @arg   user             string
--- @arg   seen             integer
--- @arg   tickets          integer
--- @arg   seats[line]      string  seat.seat, of a tier: all that the buyer had when the caller looked
--- @arg   freed[line]      string  the counters of the blocks of its seats as the caller saw them, counter.counter
--- @reply counted
--- @reply changed
--- @reply not_loaded

local FIRST_TIER_KEY, FIRST_LINE_ARG = 2, 5

local sale_key = KEYS[1]
local epoch, user, seen, tickets = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local buyer = '@' .. user
local found = call('HMGET', sale_key, 'loaded', buyer)
local has = tonumber(found[2] or 0)
if found[1] ~= epoch then
  return { 'not_loaded' }
elseif has ~= seen then
  return { 'changed' }
end
local seats = {}
for key = FIRST_TIER_KEY, #KEYS, 2 do
  local arg = FIRST_LINE_ARG + key - FIRST_TIER_KEY
  seats[key] = unpack_seats(ARGV[arg])
  if counters_of(KEYS[key + 1], seats[key]) ~= ARGV[arg + 1] then
    return { 'changed' }
  end
end

-- Whoever looked when this did, and comes later, must not lower the number once more: it may be the same again.
for key = FIRST_TIER_KEY, tickets < has and #KEYS or 0, 2 do
  local grid = grid_of(KEYS[key])
  if grid then
    count_freed(KEYS[key], KEYS[key + 1], grid, seats[key])
  end
end

add_bought(sale_key, buyer, has, tickets - has)
return { 'counted' }
