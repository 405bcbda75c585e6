--- restore.lua: write the hold of a pending order that Redis has forgotten, unless it has one.
--- @key   sale             hash    epoch
--- @key   hold             hash    order -> deadline|content|tickets|lines|user
--- @key   due              zset    orders by deadline
--- @key   bought           hash    user -> tickets held or bought
--- @key   tier[line]       hash    rows, row_bytes, legs
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @arg   epoch            string
--- @arg   order            string
--- @arg   record           string  deadline|content|tickets|lines|user
--- @reply restored
--- @reply not_loaded

local FIRST_LINE_KEY = 5

local sale_key, hold_key, due_key, bought_key = unpack(KEYS, 1, 4)
local epoch, order, record = unpack(ARGV, 1, 3)
local deadline, _, tickets, packed, user = unpack_record(record)
local lines = deadline and unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the hold record is malformed')
end
if not is_loaded(sale_key, epoch) then
  return { 'not_loaded' }
elseif redis.call('HEXISTS', hold_key, order) == 1 then
  return { 'restored' }
end

local writes = {}
local key = FIRST_LINE_KEY
for _, line in ipairs(lines) do
  local grid = grid_of(KEYS[key])
  key = key + 1
  local fields = grid and setting(runs_of(line.seats, grid.places))
  for leg = line.from, line.to - 1 do
    if grid and leg < grid.legs then
      writes[#writes + 1] = { key = KEYS[key], fields = fields }
    end
    key = key + 1
  end
end

for _, write in ipairs(writes) do
  write_bits(write.key, write.fields)
end
redis.call('HSET', hold_key, order, record)
redis.call('ZADD', due_key, deadline, order)
add_bought(bought_key, user, tonumber(tickets))
return { 'restored' }
