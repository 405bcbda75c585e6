--- restore.lua: write the hold of a pending order that Redis has forgotten; if it has this very hold, take
--- the seats of it that are free.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[line]      counters  how often seats of each block of 32 were given back
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold[line]       bitmap  1 where a seat is sold on a leg
--- @arg   epoch            string
--- @arg   order            string
--- @arg   record           string  deadline|content|tickets|lines|user
--- @arg   sold             string  how many of its seats were sold when the caller looked: none, some or all
--- @arg   freed[line]      string  the counters of the blocks of its seats as the caller saw them, counter.counter
--- @reply restored
--- @reply changed
--- @reply not_loaded

local FIRST_LINE_KEY, FIRST_FREED_ARG = 3, 5

local sale_key, due_key = KEYS[1], KEYS[2]
local epoch, order, record, sold_seen = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local deadline, _, tickets, packed, user = string.match(record, RECORD)
local lines = deadline and unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the hold record is malformed')
end
local buyer = '@' .. user
local found = call('HMGET', sale_key, 'loaded', order, buyer)
local held, had = found[2], found[3]
if found[1] ~= epoch then
  return { 'not_loaded' }
elseif held and held ~= record then
  return { 'restored' }
end

local any_sold, all_sold, writes = false, true, {}
local grids = each_tier(lines, FIRST_LINE_KEY, function(taken_key, sold_key, line, grid)
  local runs = runs_of_line(line, grid)
  local fields = setting(runs)
  for i, sold in ipairs(reading(sold_key, runs)) do
    any_sold = any_sold or sold ~= 0
    all_sold = all_sold and sold == fields[4 * i]
  end
  writes[#writes + 1] = { taken_key, sold_key, fields, clearing(runs) }
end)
-- The order may have ended since the caller read it: then more of its seats are sold, or they were freed. Not
-- so while its hold is there: what a hold names is taken, whatever another one has given back.
if not held then
  local sold = any_sold and (all_sold and 'all' or 'some') or 'none'
  if sold ~= sold_seen then
    return { 'changed' }
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
  if any_sold and not held then
    write_bits(write[2], write[4])
  end
end
if not held then
  call('HSET', sale_key, order, record)
  call('ZADD', due_key, deadline, order)
  add_bought(sale_key, buyer, had, tickets)
end
return { 'restored' }
