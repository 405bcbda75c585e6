--- repair.lua: free seat-legs of one tier that nobody holds or claims, unless a seat of their blocks was
--- freed since the caller looked.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   tier             hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed            counters  how often seats of each block of 32 were given back
--- @key   taken            bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold             bitmap  1 where a seat is sold on a leg
--- @arg   epoch            string
--- @arg   freed            string  the counters of the blocks of all seats as the caller saw them, counter.counter
--- @arg   leg[leg]         integer
--- @arg   seats[leg]       string  seat.seat, ascending
--- @reply repaired
--- @reply changed
--- @reply not_loaded

local FIRST_LEG_ARG = 3

local sale_key, tier_key, freed_key, taken_key, sold_key = unpack(KEYS)
local epoch, freed = ARGV[1], ARGV[2]
local grid = call('HGET', sale_key, 'loaded') == epoch and grid_of(tier_key)
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

for arg = FIRST_LEG_ARG, #ARGV, 2 do
  local leg = tonumber(ARGV[arg])
  local fields = clearing(runs_of(of_legs[arg], grid.places, grid.legs, leg, leg + 1))
  write_bits(taken_key, fields)
  write_bits(sold_key, fields)
end
count_freed(tier_key, freed_key, grid, seats)
return { 'repaired' }
