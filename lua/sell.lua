--- sell.lua: mark the seats of a paid order sold, also if its hold was forgotten.
--- @key   sale             hash    epoch
--- @key   hold             hash    order -> deadline|content|tickets|lines|user
--- @key   due              zset    orders by deadline
--- @key   bought           hash    user -> tickets held or bought
--- @key   tier[line]       hash    rows, row_bytes, legs
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[line,leg]   bitmap  1 where a seat is sold
--- @arg   epoch            string
--- @arg   order            string
--- @arg   user             string
--- @arg   lines            string  tier,from,to,seat.seat joined by ;
--- @reply sold
--- @reply not_loaded

local FIRST_LINE_KEY = 5

local sale_key, hold_key, due_key, bought_key = unpack(KEYS, 1, 4)
local epoch, order, user, packed = unpack(ARGV, 1, 4)
local lines = unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the lines are malformed')
end
if not is_loaded(sale_key, epoch) then
  return { 'not_loaded' }
end
local record = redis.call('HGET', hold_key, order)
local is_held = false
if record then
  local _, _, _, held = unpack_record(record)
  is_held = held == packed
end

-- A sale that is reported again must not count again: whether all seats are sold says so.
local tickets, all_sold, writes = 0, true, {}
local key = FIRST_LINE_KEY
for _, line in ipairs(lines) do
  tickets = tickets + #line.seats
  local grid = grid_of(KEYS[key])
  key = key + 1
  local runs = grid and runs_of(line.seats, grid.places)
  local fields = grid and setting(runs)
  for leg = line.from, line.to - 1 do
    if grid and leg < grid.legs and #runs > 0 then
      writes[#writes + 1] = { taken = KEYS[key], sold = KEYS[key + 1], fields = fields }
      if not is_held and all_sold then
        for i, value in ipairs(reading(KEYS[key + 1], runs)) do
          all_sold = all_sold and value == fields[4 * i]
        end
      end
    end
    key = key + 2
  end
end

for _, write in ipairs(writes) do
  write_bits(write.taken, write.fields)
  write_bits(write.sold, write.fields)
end
if is_held then
  redis.call('HDEL', hold_key, order)
  redis.call('ZREM', due_key, order)
elseif not all_sold then
  add_bought(bought_key, user, tickets)
end
return { 'sold' }
