--- repair.lua: free seat-legs of one tier that nobody holds or claims, unless a seat of their blocks was
--- freed since the caller looked.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   tier             hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed            counters  how often seats of each block of 32 were given back
--- @key   taken[leg]       bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[leg]        bitmap  1 where a seat is sold
--- @arg   epoch            string
--- @arg   freed            string  the counters of the blocks of all seats as the caller saw them, counter.counter
--- @arg   leg[leg]         integer
--- @arg   seats[leg]       string  seat.seat, ascending
--- @reply repaired
--- @reply changed
--- @reply not_loaded

local FIRST_LEG_KEY, FIRST_LEG_ARG = 4, 3

local sale_key, tier_key, freed_key = KEYS[1], KEYS[2], KEYS[3]
local epoch, freed = ARGV[1], ARGV[2]
local grid = call('HGET', sale_key, 'epoch') == epoch and grid_of(tier_key)
local of_legs, seats = {}, {}
for arg = FIRST_LEG_ARG, #ARGV, 2 do
  local of_leg = unpack_seats(ARGV[arg + 1])
  of_legs[arg] = of_leg
  for i = 1, #of_leg do
    seats[#seats + 1] = of_leg[i]
  end
end
if not grid then
  return { 'not_loaded' }
elseif counters_of(freed_key, seats) ~= freed then
  return { 'changed' }
end

local key = FIRST_LEG_KEY
for arg = FIRST_LEG_ARG, #ARGV, 2 do
  if tonumber(ARGV[arg]) < grid.legs then
    local fields = clearing(runs_of(of_legs[arg], grid.places))
    write_bits(KEYS[key], fields)
    write_bits(KEYS[key + 1], fields)
  end
  key = key + 2
end
count_freed(tier_key, freed_key, grid, seats)
return { 'repaired' }
