--- unsell.lua: free sold seats that nobody claims any more, all or none, unless a seat of their blocks was
--- freed since the caller looked.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[line]      counters  how often seats of each block of 32 were given back
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold[line]       bitmap  1 where a seat is sold on a leg
--- @arg   epoch            string
--- @arg   user             string
--- @arg   lines            string  tier,from,to,seat.seat joined by ;
--- @arg   freed[line]      string  the counters of the blocks of its seats as the caller saw them, counter.counter
--- @reply unsold
--- @reply not_sold
--- @reply changed
--- @reply not_loaded

local FIRST_LINE_KEY, FIRST_FREED_ARG = 3, 4

local sale_key = KEYS[1]
local epoch, user, packed = ARGV[1], ARGV[2], ARGV[3]
local lines = unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the lines are malformed')
end
local buyer = '@' .. user
local found = call('HMGET', sale_key, 'loaded', buyer)
local had = found[2]
if found[1] ~= epoch then
  return { 'not_loaded' }
end

local all_sold, writes = true, {}
local grids = each_tier(lines, FIRST_LINE_KEY, function(taken_key, sold_key, line, grid)
  local runs = runs_of_line(line, grid)
  local full = setting(runs)
  local taken, sold = reading(taken_key, runs), reading(sold_key, runs)
  for i = 1, #sold do
    all_sold = all_sold and sold[i] == full[4 * i] and taken[i] == full[4 * i]
  end
  local fields = clearing(runs)
  writes[#writes + 1] = { taken_key, fields }
  writes[#writes + 1] = { sold_key, fields }
end)
local tickets = 0
for i, grid in ipairs(grids) do
  local seats, seen = lines[i].seats, ARGV[FIRST_FREED_ARG + i - 1]
  if not grid or counters_of(KEYS[grid.key + 1], seats) ~= seen then
    return { 'changed' }
  end
  for _, seat in ipairs(seats) do
    all_sold = all_sold and seat < grid.places
  end
  all_sold = all_sold and lines[i].to <= grid.legs
  tickets = tickets + #seats
end
if not all_sold then
  return { 'not_sold' }
end

for _, write in ipairs(writes) do
  write_bits(write[1], write[2])
end
for i, grid in ipairs(grids) do
  count_freed(KEYS[grid.key], KEYS[grid.key + 1], grid, lines[i].seats)
end
add_bought(sale_key, buyer, had, -tickets)
return { 'unsold' }
