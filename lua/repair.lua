--- repair.lua: free seat-legs of one tier that nobody holds or claims, unless any seat of it was freed
--- since the caller looked.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   tier             hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   taken[leg]       bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[leg]        bitmap  1 where a seat is sold
--- @arg   epoch            string
--- @arg   freed            string  the counter as the caller saw it
--- @arg   leg[leg]         integer
--- @arg   seats[leg]       string  seat.seat, ascending
--- @reply repaired
--- @reply changed
--- @reply not_loaded

local FIRST_LEG_KEY, FIRST_LEG_ARG = 3, 3

local sale_key, tier_key = KEYS[1], KEYS[2]
local epoch, freed = ARGV[1], ARGV[2]
local grid = call('HGET', sale_key, 'epoch') == epoch and grid_of(tier_key)
if not grid then
  return { 'not_loaded' }
elseif grid.freed ~= freed then
  return { 'changed' }
end

local key = FIRST_LEG_KEY
for arg = FIRST_LEG_ARG, #ARGV, 2 do
  if tonumber(ARGV[arg]) < grid.legs then
    local fields = clearing(runs_of(unpack_seats(ARGV[arg + 1]), grid.places))
    write_bits(KEYS[key], fields)
    write_bits(KEYS[key + 1], fields)
  end
  key = key + 2
end
forget_searches(tier_key, grid)
return { 'repaired' }
