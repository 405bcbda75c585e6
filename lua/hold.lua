--- hold.lua: hold every line of an order, or none; the same number is answered with the same seats.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   scratch          bitmap  what is taken on any leg of a journey, for the length of the script
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   taken[line,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @arg   epoch            string
--- @arg   order            string
--- @arg   user             string
--- @arg   content          string
--- @arg   now_ms           integer
--- @arg   deadline_ms      integer
--- @arg   replaced         integer
--- @arg   tier[line]       string
--- @arg   from[line]       integer
--- @arg   to[line]         integer
--- @arg   choice[line]     string  seats | best | pattern
--- @arg   count[line]      integer
--- @arg   search[line]     string  count:from:to | prows:pattern:from:to
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

local FIRST_LINE_KEY, FIRST_LINE_ARG, LINE_ARGS = 4, 8, 7

local sale_key, order, user, content = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local now, deadline_ms = tonumber(ARGV[5]), ARGV[6]
local buyer = '@' .. user

local found =
  call('HMGET', sale_key, 'epoch', 'state', 'opens_ms', 'closes_ms', 'limit', order, buyer)
if found[1] ~= ARGV[1] then
  return { 'not_loaded' }
end
local record, bought = found[6], found[7] or 0
-- The limit makes room for tickets that replace others of the buyer.
local left = math.max(found[5] + ARGV[7] - bought, 0)
if record then
  local deadline, held_content, _, _, held_user = string.match(record, RECORD)
  if not deadline then
    return redis.error_reply('CONTRACT the hold record is malformed')
  elseif held_content ~= content or held_user ~= user then
    return { 'content_differs' }
  elseif tonumber(deadline) <= now then
    return { 'hold_expired' }
  end
  return { 'held', record, left }
end
if found[2] ~= 'open' or now < tonumber(found[3]) or now >= tonumber(found[4]) then
  return { 'sale_closed' }
end
local tickets = 0
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  tickets = tickets + ARGV[arg + 4]
end
if tickets > left then
  return { 'limit_reached', left }
end

-- For each line its first and last leg, by their keys, and what to set there.
local chosen, n = { 0, 0, 0 }, 0
local packed
local key = FIRST_LINE_KEY
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  local tier, from, to, choice, count, search, detail = unpack(ARGV, arg, arg + LINE_ARGS - 1)
  local tier_key, first_leg, last_leg = KEYS[key], key + 1, key + to - from
  local shape = call('HMGET', tier_key, 'rows', 'row_bytes', 'legs', search)
  local row_bytes = tonumber(shape[2])
  if not row_bytes then
    return { 'sold_out', tier }
  elseif tonumber(to) > tonumber(shape[3]) or not KEYS[last_leg] then
    return redis.error_reply('CONTRACT a line takes a leg that its tier has not')
  end
  local bytes = shape[1] * row_bytes
  local source = KEYS[first_leg]
  if last_leg > first_leg then
    source = KEYS[3]
    call('BITOP', 'OR', source, unpack(KEYS, first_leg, last_leg))
  end
  local seats, refusal, taken
  if choice == 'best' then
    seats, refusal = best(source, row_bytes, bytes, tier_key, search, shape[4], count, detail)
  elseif choice == 'seats' then
    seats, refusal, taken = these(source, bytes, count, detail)
  else
    seats, refusal = fitting(source, row_bytes, bytes, tier_key, search, shape[4], detail)
  end
  if last_leg > first_leg then
    call('DEL', source)
  end
  if refusal then
    return { refusal, tier, taken }
  end
  local line = tier .. ',' .. from .. ',' .. to .. ',' .. string.format('%d', seats[1])
  for i = 2, #seats do
    line = string.format('%s.%d', line, seats[i])
  end
  packed = packed and packed .. ';' .. line or line
  -- Ascending seats are one run if none between the first and the last is left out.
  local span, fields = seats[#seats] - seats[1] + 1, nil
  if choice ~= 'pattern' and span == #seats and span <= LONGEST_RUN then
    fields = { 'SET', 'u' .. count, seats[1], 2 ^ span - 1 }
  else
    fields = setting(runs_of(seats, bytes * 8))
  end
  chosen[n + 1], chosen[n + 2], chosen[n + 3] = first_leg, last_leg, fields
  n = n + 3
  key = last_leg + 1
end

for i = 1, n, 3 do
  local fields = chosen[i + 2]
  for leg = chosen[i], chosen[i + 1] do
    call('BITFIELD', KEYS[leg], unpack(fields))
  end
end
record = deadline_ms .. '|' .. content .. '|' .. tickets .. '|' .. packed .. '|' .. user
call('HSET', sale_key, order, record, buyer, bought + tickets)
call('ZADD', KEYS[2], deadline_ms, order)
return { 'held', record, left - tickets }
