--- mark.lua: take seats that other orders own out of a hold and leave them taken. A seat goes whole:
--- the legs of it that nobody else owns are free again.
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
--- @reply marked           record
--- @reply emptied
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
local deadline, content, tickets, packed, user = unpack_record(record)
local lines = deadline and unpack_lines(packed)
if not lines then
  return redis.error_reply('CONTRACT the hold record is malformed')
end

local lost_seats, lost_seat_legs = {}, {}
for tier, leg, seat in string.gmatch(lost, '([^,;]+),(%d+),(%d+)') do
  lost_seats[tier .. ',' .. seat] = true
  lost_seat_legs[tier .. ',' .. leg .. ',' .. seat] = true
end

local writes, tiers, kept_lines, kept_tickets = {}, {}, {}, 0
local key = FIRST_LINE_KEY
for _, line in ipairs(lines) do
  local tier_key, cursor_key = KEYS[key], KEYS[key + 1]
  local grid = grid_of(tier_key)
  key = key + 2
  local kept, gone = {}, {}
  for _, seat in ipairs(line.seats) do
    local pile = lost_seats[line.tier .. ',' .. seat] and gone or kept
    pile[#pile + 1] = seat
  end
  for leg = line.from, line.to - 1 do
    if grid and leg < grid.legs then
      local free = {}
      for _, seat in ipairs(gone) do
        if not lost_seat_legs[line.tier .. ',' .. leg .. ',' .. seat] then
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
  if grid and #gone > 0 then
    tiers[#tiers + 1] = { key = tier_key, cursor_key = cursor_key, row = first_row(gone, grid) }
  end
  if #kept > 0 then
    kept_lines[#kept_lines + 1] = pack_line(line.tier, line.from, line.to, kept)
    kept_tickets = kept_tickets + #kept
  end
end

for _, write in ipairs(writes) do
  write_bits(write.key, write.fields)
end
for _, tier in ipairs(tiers) do
  redis.call('HINCRBY', tier.key, 'freed', 1)
  lower_cursors(tier.cursor_key, tier.row)
end
add_bought(bought_key, user, kept_tickets - tonumber(tickets))
if kept_tickets == 0 then
  redis.call('HDEL', hold_key, order)
  redis.call('ZREM', due_key, order)
  return { 'emptied' }
end
local kept = table.concat({ deadline, content, kept_tickets, table.concat(kept_lines, ';'), user }, '|')
redis.call('HSET', hold_key, order, kept)
return { 'marked', kept }
