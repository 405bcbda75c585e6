--- hold.lua: hold every line of an order, or none; the same number is answered with the same seats.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, middle (if every row has the same), search:journey -> first row that may hold it, or -
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   middles[line]    string  twice the column of each row's middle, 16 bits each; none if seats are best at the left
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

local FIRST_LINE_KEY, LINE_KEYS, FIRST_LINE_ARG, LINE_ARGS = 3, 3, 8, 7

-- The arguments of BITFIELD that take free seats on some of several legs. The bytes of neighbouring legs are one
-- number, to which is added what takes the seats in each: as they are free, nothing is carried over.
local function taking(seats, legs, from, to)
  -- Lua's numbers are exact up to 53 bits.
  local TYPES = { 'u8', 'u16', 'u24', 'u32', 'u40', 'u48' }
  local fields, n, i = {}, 0, 1
  while i <= #seats do
    local at, mask = floor(seats[i] / 8), 0
    repeat
      mask = bit.bor(mask, bit.rshift(128, seats[i] % 8))
      i = i + 1
    until not seats[i] or floor(seats[i] / 8) ~= at
    for leg = from, to - 1, #TYPES do
      local count = math.min(to - leg, #TYPES)
      fields[n + 1], fields[n + 2] = 'INCRBY', TYPES[count]
      fields[n + 3], fields[n + 4] = (at * legs + leg) * 8, mask * ((256 ^ count - 1) / 255)
      n = n + 4
    end
  end
  return fields
end

local sale_key, order, user, content = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local now, deadline_ms = tonumber(ARGV[5]), ARGV[6]
local buyer = '@' .. user

local epoch, state, opens_ms, closes_ms, limit, record, bought = unpack(
  call('HMGET', sale_key, 'loaded', 'state', 'opens_ms', 'closes_ms', 'limit', order, buyer))
if epoch ~= ARGV[1] then
  return { 'not_loaded' }
end
bought = bought or 0
-- The limit makes room for tickets that replace others of the buyer.
local replaced = ARGV[7]
local left = math.max(limit + replaced - bought, 0)
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
if state ~= 'open' or now < tonumber(opens_ms) or now >= tonumber(closes_ms) then
  return { 'sale_closed' }
end
local tickets = 0
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  tickets = tickets + ARGV[arg + 4]
end
if tickets > left then
  return { 'limit_reached', left }
end

-- For each line the key of what is taken, and what to set there.
local chosen, n = { 0, 0 }, 0
local packed
local key = FIRST_LINE_KEY
for arg = FIRST_LINE_ARG, #ARGV, LINE_ARGS do
  local tier, from, to, choice, count, search, detail = unpack(ARGV, arg, arg + LINE_ARGS - 1)
  local tier_key, source, middles = KEYS[key], KEYS[key + 1], KEYS[key + 2]
  local shape = call('HMGET', tier_key, 'rows', 'row_bytes', 'legs', search, 'middle')
  local row_bytes, legs, first_leg, last_leg = tonumber(shape[2]), tonumber(shape[3]), from + 0, to + 0
  if not row_bytes then
    return { 'sold_out', tier }
  elseif last_leg > legs or not middles then
    return redis.error_reply('CONTRACT a line takes a leg that its tier has not')
  end
  local bytes = shape[1] * row_bytes
  local seats, refusal, taken
  if choice == 'best' then
    seats, refusal = best(
      source, middles, row_bytes, bytes, legs, first_leg, last_leg, tier_key, search, shape[4],
      tonumber(shape[5] or nil), count, detail)
  elseif choice == 'seats' then
    seats, refusal, taken = these(source, bytes, legs, first_leg, last_leg, count, detail)
  else
    seats, refusal = fitting(
      source, row_bytes, bytes, legs, first_leg, last_leg, tier_key, search, shape[4], detail)
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
  if legs > 1 then
    fields = taking(seats, legs, first_leg, last_leg)
  elseif choice ~= 'pattern' and span == #seats and span <= LONGEST_RUN then
    fields = { 'SET', 'u' .. count, seats[1], 2 ^ span - 1 }
  else
    fields = setting(runs_of(seats, bytes * 8, 1, 0, 1))
  end
  chosen[n + 1], chosen[n + 2] = source, fields
  n = n + 2
  key = key + LINE_KEYS
end

for i = 1, n, 2 do
  call('BITFIELD', chosen[i], unpack(chosen[i + 1]))
end
record = deadline_ms .. '|' .. content .. '|' .. tickets .. '|' .. packed .. '|' .. user
call('HSET', sale_key, order, record, buyer, bought + tickets)
call('ZADD', KEYS[2], deadline_ms, order)
return { 'held', record, left - tickets }
