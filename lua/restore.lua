--- restore.lua: write the hold of a pending order that Redis has forgotten; if it has this very hold, take
--- the seats of it that are free.
--- @key   sale             hash    epoch
--- @key   hold             hash    order -> deadline|content|tickets|lines|user
--- @key   due              zset    orders by deadline
--- @key   bought           hash    user -> tickets held or bought
--- @key   tier[line]       hash    rows, row_bytes, legs, freed
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[line,leg]   bitmap  1 where a seat is sold
--- @arg   epoch            string
--- @arg   order            string
--- @arg   record           string  deadline|content|tickets|lines|user
--- @arg   freed[line]      string
--- @reply restored
--- @reply changed
--- @reply not_loaded

local FIRST_LINE_KEY, FIRST_FREED_ARG = 5, 4

local sale_key, hold_key, due_key, bought_key = unpack(KEYS, 1, 4)
local epoch, order, record = unpack(ARGV, 1, 3)
local deadline, _, tickets, packed, user = unpack_record(record)
local lines = deadline and unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the hold record is malformed')
end
if not is_loaded(sale_key, epoch) then
  return { 'not_loaded' }
end
local held = redis.call('HGET', hold_key, order)
if held and held ~= record then
  return { 'restored' }
end

-- The order may have ended since the caller read it: then its seats are sold, or were freed. Not so
-- while its hold is there: what a hold names is taken, whatever another one has given back.
local writes = {}
local key = FIRST_LINE_KEY
for i, line in ipairs(lines) do
  if not held and redis.call('HGET', KEYS[key], 'freed') ~= ARGV[FIRST_FREED_ARG + i - 1] then
    return { 'changed' }
  end
  local grid = grid_of(KEYS[key])
  key = key + 1
  local runs = grid and runs_of(line.seats, grid.places)
  local fields = grid and setting(runs)
  for leg = line.from, line.to - 1 do
    if grid and leg < grid.legs and #runs > 0 then
      for _, sold in ipairs(reading(KEYS[key + 1], runs)) do
        if not held and sold ~= 0 then
          return { 'changed' }
        end
      end
      writes[#writes + 1] = { key = KEYS[key], fields = fields }
    end
    key = key + 2
  end
end

for _, write in ipairs(writes) do
  write_bits(write.key, write.fields)
end
if not held then
  redis.call('HSET', hold_key, order, record)
  redis.call('ZADD', due_key, deadline, order)
  add_bought(bought_key, user, tonumber(tickets))
end
return { 'restored' }
