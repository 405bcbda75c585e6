--- hold.lua: hold every line of an order, or none; the same number is answered with the same seats.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit
--- @key   hold             hash    order -> deadline|content|tickets|lines|user
--- @key   due              zset    orders by deadline
--- @key   bought           hash    user -> tickets held or bought
--- @key   scratch          bitmap  what is taken on any leg of a journey, for the length of the script
--- @key   tier[line]       hash    rows, row_bytes, legs
--- @key   cursor[line]     hash    search and journey -> first row that may still hold it, or -
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @arg   epoch            string
--- @arg   order            string
--- @arg   user             string
--- @arg   content          string
--- @arg   now_ms           integer
--- @arg   deadline_ms      integer
--- @arg   tier[line]       string
--- @arg   from[line]       integer
--- @arg   to[line]         integer
--- @arg   choice[line]     string  seats | best | pattern
--- @arg   count[line]      integer
--- @arg   detail[line]     string  seat.seat | required or preferred | column,row:columns,row:columns
--- @reply held             record allowance
--- @reply not_loaded
--- @reply content_differs
--- @reply hold_expired
--- @reply sale_closed
--- @reply limit_reached    allowance
--- @reply seat_taken       tier seats
--- @reply sold_out         tier
--- @reply no_adjacent      tier

local FIRST_LINE_KEY, FIRST_LINE_ARG, LINE_ARGS = 6, 7, 6

local sale_key, hold_key, due_key, bought_key, scratch_key = unpack(KEYS, 1, 5)
local epoch, order, user, content, now_ms, deadline_ms = unpack(ARGV, 1, 6)
local now = tonumber(now_ms)

local terms = redis.call('HMGET', sale_key, 'epoch', 'state', 'opens_ms', 'closes_ms', 'limit')
if terms[1] ~= epoch then
  return { 'not_loaded' }
end
local bought = tonumber(redis.call('HGET', bought_key, user) or 0)
local left = math.max(tonumber(terms[5]) - bought, 0)

local record = redis.call('HGET', hold_key, order)
if record then
  local deadline, held_content, _, _, held_user = unpack_record(record)
  if not deadline then
    return redis.error_reply('CONTRACT the hold record is malformed')
  elseif held_content ~= content or held_user ~= user then
    return { 'content_differs' }
  elseif tonumber(deadline) <= now then
    return { 'hold_expired' }
  end
  return { 'held', record, left }
end

if terms[2] ~= 'open' or now < tonumber(terms[3]) or now >= tonumber(terms[4]) then
  return { 'sale_closed' }
end
local tickets = 0
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  tickets = tickets + tonumber(ARGV[arg + 4])
end
if tickets > left then
  return { 'limit_reached', left }
end

-- What a search has learned holds also when the order is refused, and spares the next refusal the
-- same walk.
local learned, has_scratch = {}, false
local function answer(reply)
  for i = 1, #learned, 3 do
    redis.call('HSET', learned[i], learned[i + 1], learned[i + 2])
  end
  if has_scratch then
    redis.call('DEL', scratch_key)
  end
  return reply
end

-- Where the search of a kind begins.
local function begin(cursor_key, field)
  local remembered = redis.call('HGET', cursor_key, field)
  return remembered == '-' and '-' or tonumber(remembered or 0), remembered
end

local function remember(cursor_key, field, remembered, row)
  if tostring(row) ~= remembered then
    local n = #learned
    learned[n + 1], learned[n + 2], learned[n + 3] = cursor_key, field, row
  end
end

local chosen, packed = {}, {}
local key = FIRST_LINE_KEY
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  local tier, from, to, choice, count, detail = unpack(ARGV, arg, arg + LINE_ARGS - 1)
  local first_leg, last_leg = key + 2, key + 1 + to - from
  local cursor_key = KEYS[key + 1]
  local grid = grid_of(KEYS[key])
  if not grid then
    return answer({ 'sold_out', tier })
  elseif tonumber(to) > grid.legs or not KEYS[last_leg] then
    answer()
    return redis.error_reply('CONTRACT a line takes a leg that its tier has not')
  end
  local source = KEYS[first_leg]
  if last_leg > first_leg then
    has_scratch = true
    redis.call('BITOP', 'OR', scratch_key, unpack(KEYS, first_leg, last_leg))
    source = scratch_key
  end
  local journey = ':' .. from .. ':' .. to
  local seats, refusal, row
  if choice == 'seats' then
    seats = unpack_seats(detail)
    local taken = taken_of(source, grid, seats)
    if #taken > 0 then
      return answer({ 'seat_taken', tier, table.concat(taken, '.') })
    end
  elseif choice == 'best' then
    local field = count .. journey
    local start, remembered = begin(cursor_key, field)
    seats, refusal, row = best(source, grid, start, tonumber(count), detail)
    remember(cursor_key, field, remembered, row)
  elseif choice == 'pattern' then
    local places, reach = pattern_of(detail)
    local field = 'p' .. reach .. ':' .. detail .. journey
    local start, remembered = begin(cursor_key, field)
    seats, refusal, row = fitting(source, grid, start, places, reach)
    remember(cursor_key, field, remembered, row)
  else
    answer()
    return redis.error_reply('CONTRACT a line chooses its seats in no known way')
  end
  if refusal then
    return answer({ refusal, tier })
  end
  chosen[#chosen + 1] = { first_leg = first_leg, last_leg = last_leg, runs = runs_of(seats, grid.places) }
  packed[#packed + 1] = pack_line(tier, from, to, seats)
  key = last_leg + 1
end

for _, line in ipairs(chosen) do
  local fields = setting(line.runs)
  for leg = line.first_leg, line.last_leg do
    redis.call('BITFIELD', KEYS[leg], unpack(fields))
  end
end
record = table.concat({ deadline_ms, content, tickets, table.concat(packed, ';'), user }, '|')
redis.call('HSET', hold_key, order, record)
redis.call('ZADD', due_key, deadline_ms, order)
redis.call('HSET', bought_key, user, bought + tickets)
return answer({ 'held', record, left - tickets })
