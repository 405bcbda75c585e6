--- mark.lua: give a hold back if it still is what the caller saw, but leave taken what other orders own.
--- @key   hold             hash    order -> deadline|content|tickets|lines|user
--- @key   due              zset    orders by deadline
--- @key   bought           hash    user -> tickets held or bought
--- @key   tier[line]       hash    rows, row_bytes, legs, freed
--- @key   cursor[line]     hash    search and journey -> first row that may still hold it, or -
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[line,leg]   bitmap  1 where a seat is sold
--- @arg   order            string
--- @arg   record           string  deadline|content|tickets|lines|user, as the caller saw it
--- @arg   lost             string  tier,leg,seat joined by ;
--- @reply marked
--- @reply not_held
--- @reply changed

local FIRST_LINE_KEY = 4

local hold_key, due_key, bought_key = unpack(KEYS, 1, 3)
local order, seen, lost = unpack(ARGV, 1, 3)
local record = redis.call('HGET', hold_key, order)
if not record then
  return { 'not_held' }
elseif record ~= seen then
  return { 'changed' }
end
local _, _, tickets, packed, user = unpack_record(record)
local lines = tickets and unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the hold record is malformed')
end

local is_lost = {}
for tier, leg, seat in string.gmatch(lost, '([^,;]+),(%d+),(%d+)') do
  is_lost[tier .. ',' .. leg .. ',' .. seat] = true
end

local writes, tiers = {}, {}
local key = FIRST_LINE_KEY
for _, line in ipairs(lines) do
  local tier_key, cursor_key = KEYS[key], KEYS[key + 1]
  local grid = grid_of(tier_key)
  key = key + 2
  for leg = line.from, line.to - 1 do
    if grid and leg < grid.legs then
      local free = {}
      for _, seat in ipairs(line.seats) do
        if not is_lost[line.tier .. ',' .. leg .. ',' .. seat] then
          free[#free + 1] = seat
        end
      end
      local runs = runs_of(free, grid.places)
      if #runs > 0 then
        local fields = freeing(KEYS[key], KEYS[key + 1], runs)
        writes[#writes + 1] = { key = KEYS[key], fields = fields }
      end
    end
    key = key + 2
  end
  if grid then
    tiers[#tiers + 1] = { key = tier_key, cursor_key = cursor_key, row = first_row(line.seats, grid) }
  end
end

for _, write in ipairs(writes) do
  write_bits(write.key, write.fields)
end
for _, tier in ipairs(tiers) do
  redis.call('HINCRBY', tier.key, 'freed', 1)
  lower_cursors(tier.cursor_key, tier.row)
end
redis.call('HDEL', hold_key, order)
redis.call('ZREM', due_key, order)
add_bought(bought_key, user, -tonumber(tickets))
return { 'marked' }
