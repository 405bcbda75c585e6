--- sell.lua: mark the seats of a paid order sold: those of its hold; without it only if no seat of their
--- blocks was freed since the caller looked.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[line]      counters  how often seats of each block of 32 were given back
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold[line]       bitmap  1 where a seat is sold on a leg
--- @arg   epoch            string
--- @arg   order            string
--- @arg   user             string
--- @arg   lines            string  tier,from,to,seat.seat joined by ;
--- @arg   freed[line]      string  the counters of the blocks of its seats as the caller saw them, counter.counter; none if it has not
--- @reply sold
--- @reply not_held
--- @reply changed
--- @reply not_loaded

local FIRST_LINE_KEY, FIRST_FREED_ARG = 3, 5

local sale_key, due_key = KEYS[1], KEYS[2]
local epoch, order, user, packed = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lines = unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the lines are malformed')
end
local buyer = '@' .. user
local found = call('HMGET', sale_key, 'loaded', order, buyer)
local record, had = found[2], found[3]
if found[1] ~= epoch then
  return { 'not_loaded' }
end
local is_held = false
if record then
  local _, _, _, held = string.match(record, RECORD)
  is_held = held == packed
end

-- A sale that is reported again must not count again: whether all seats are sold says so.
local all_sold, writes = true, {}
local grids = each_tier(lines, FIRST_LINE_KEY, function(taken_key, sold_key, line, grid)
  local runs = runs_of_line(line, grid)
  local fields = setting(runs)
  writes[#writes + 1] = { taken_key, sold_key, fields }
  if not is_held and all_sold then
    for i, value in ipairs(reading(sold_key, runs)) do
      all_sold = all_sold and value == fields[4 * i]
    end
  end
end)

-- Without its hold the order may be refunded since the caller read it, and its seats be another's.
if not is_held then
  if all_sold then
    return { 'sold' }
  elseif not ARGV[FIRST_FREED_ARG] then
    return { 'not_held' }
  end
  for i, grid in ipairs(grids) do
    local seen = ARGV[FIRST_FREED_ARG + i - 1]
    if not grid or counters_of(KEYS[grid.key + 1], lines[i].seats) ~= seen then
      return { 'changed' }
    end
  end
end

for _, write in ipairs(writes) do
  write_bits(write[1], write[3])
  write_bits(write[2], write[3])
end
if is_held then
  call('HDEL', sale_key, order)
  call('ZREM', due_key, order)
else
  local tickets = 0
  for _, line in ipairs(lines) do
    tickets = tickets + #line.seats
  end
  add_bought(sale_key, buyer, had, tickets)
end
return { 'sold' }
