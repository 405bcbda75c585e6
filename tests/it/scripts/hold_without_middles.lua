#!lua
-- names.lua: what every script uses again and again, looked up once.

local call, KEYS, ARGV = redis.call, KEYS, ARGV
local floor, tonumber = math.floor, tonumber

-- record.lua: what is remembered of a hold, as text.

-- The parts of a record: deadline, content, tickets, lines and user. The user comes last because it is
-- free text.
local RECORD = '^(-?%d+)|(%x+)|(%d+)|([^|]*)|(.+)$'

-- runs.lua: many seats of a tier in one command.
--
-- A tier has one bitmap for all of its legs: a byte for eight places, and of each such byte one for every
-- leg, one after another. So a seat's bits on a journey lie beside each other.

-- A run is read and written as one unsigned integer, and bit.band knows 32 bits.
local LONGEST_RUN = 30

-- The bits of some seats from leg `from` until leg `to` of a tier of `legs`, as runs of neighbours: {first,
-- count, first, count, ...}. What lies outside of the grid is left out: there is no bit to change, and a
-- write would lengthen the bitmap.
local function runs_of(seats, places, legs, from, to)
  local runs, last = nil, 0
  for i = 1, #seats do
    local seat = seats[i]
    if seat >= places then
      -- There is no such place.
    elseif not runs then
      runs, last = { seat, 1 }, 2
    elseif runs[last - 1] + runs[last] == seat and runs[last] < LONGEST_RUN
      and (legs == 1 or seat % 8 > 0) then
      runs[last] = runs[last] + 1
    else
      runs[last + 1], runs[last + 2] = seat, 1
      last = last + 2
    end
  end
  if not runs or from >= legs then
    return {}
  elseif legs == 1 then
    return runs
  end
  local bits, n = {}, 0
  for i = 1, last, 2 do
    local column = runs[i] % 8
    local first = (runs[i] - column) * legs + column
    for leg = from, math.min(to, legs) - 1 do
      bits[n + 1], bits[n + 2] = first + 8 * leg, runs[i + 1]
      n = n + 2
    end
  end
  return bits
end

-- The arguments of BITFIELD that set every bit of some runs.
local function setting(runs)
  if not runs[1] then
    return {}
  end
  local fields = { 'SET', 'u' .. runs[2], runs[1], 2 ^ runs[2] - 1 }
  for i = 3, #runs, 2 do
    local count, n = runs[i + 1], 2 * i - 2
    fields[n + 1], fields[n + 2] = 'SET', 'u' .. count
    fields[n + 3], fields[n + 4] = runs[i], 2 ^ count - 1
  end
  return fields
end

-- search.lua: the three ways to choose seats, by what is taken on a whole journey.
--
-- A tier's bitmap has its legs byte beside byte (runs.lua), so that what is taken on any leg of a journey is
-- read in one piece.
--
-- Searches begin at a remembered row, leave full stretches to BITPOS, which passes over them at the
-- speed of memory, and read the rest in pieces that grow from few bytes to many. What a search has
-- learned is remembered at once, also if the order is refused later: seats can only have been taken
-- since, so it stays true, and spares the next search the same walk.
--
-- Every function costs every call, whoever uses it: there is one for each way, and what only some
-- calls need is inside of it.

local FIRST_PIECE_BYTES, LARGEST_PIECE_BYTES = 32, 512

-- What is taken of the eight places of the `i`th byte of a piece on any leg of a journey.
local function taken_in(piece, i, legs, from, to)
  local before = (i - 1) * legs
  return bit.bor(string.byte(piece, before + from + 1, before + to))
end

-- The first byte of places from `at` on that has a free one on any leg, and of a tier of one leg that place
-- itself; nil if there is none.
local function first_free(source, at, legs)
  local place = call('BITPOS', source, 0, at * legs, -1)
  if place >= 0 then
    return floor(place / (8 * legs)), place
  end
end

-- The first of `count` free seats side by side, leftmost in the first row that has them, from
-- `row` on; nil if no row has.
local function first_run(source, row_bytes, bytes, legs, from, to, row, count)
  -- Three tables, one digit for each value of a byte. What they count are free seats, zero bits: at
  -- the left end of the byte, at its right end, and in the longest run within. As strings they are
  -- constants of the script and cost nothing until they are looked at; each must be one literal.
  local LEADING =
    '8766555544444444333333333333333322222222222222222222222222222222111111111111111111111111111111111111111111111111111111111111111100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'
  local TRAILING =
    '8010201030102010401020103010201050102010301020104010201030102010601020103010201040102010301020105010201030102010401020103010201070102010301020104010201030102010501020103010201040102010301020106010201030102010401020103010201050102010301020104010201030102010'
  local LONGEST =
    '8766555544444444433333333333333354332222322222224322222232222222654433333222222243222111321121115433222232112111432221113211211176554444333333334322222232222222543322223211211143222111321121116544333332222222432221113211211154332222321121114322211132112110'
  local ZERO = 48
  local byte = string.byte
  local is_one_leg = legs == 1
  local at = row * row_bytes
  local run, first = 0, 0
  local piece_bytes = FIRST_PIECE_BYTES
  while at < bytes do
    local piece = call('GETRANGE', source, at * legs, (at + piece_bytes) * legs - 1)
    local length = #piece / legs
    if length == 0 then
      error('CONTRACT a bitmap is not as long as its tier')
    end
    local i = 1
    while i <= length do
      local value = is_one_leg and byte(piece, i) or taken_in(piece, i, legs, from, to)
      if value == 255 then
        run = 0
        if is_one_leg then
          i = string.find(piece, '[^\255]', i + 1) or length + 1
        else
          -- Over what is full on one leg of the journey it goes by that leg alone.
          local leg = from + 1
          while leg <= to and byte(piece, (i - 1) * legs + leg) < 255 do
            leg = leg + 1
          end
          repeat
            i = i + 1
          until i > length or leg > to or byte(piece, (i - 1) * legs + leg) < 255
        end
      else
        local place = at + i - 1
        if run == 0 or place % row_bytes == 0 then
          -- A run does not cross the end of its row.
          run, first = 0, place * 8
        end
        local leading = byte(LEADING, value + 1) - ZERO
        if run + leading >= count then
          return first
        elseif leading == 8 then
          run = run + 8
        elseif byte(LONGEST, value + 1) - ZERO >= count then
          run = 0
          for column = 0, 7 do
            run = bit.band(value, bit.rshift(128, column)) == 0 and run + 1 or 0
            if run == count then
              return place * 8 + column + 1 - count
            end
          end
        else
          run = byte(TRAILING, value + 1) - ZERO
          first = (place + 1) * 8 - run
        end
        i = i + 1
      end
    end
    at = at + length
    piece_bytes = math.min(2 * piece_bytes, LARGEST_PIECE_BYTES)
    if run == 0 and at < bytes then
      at = first_free(source, at, legs)
      if not at then
        return nil
      end
    end
  end
  return nil
end

-- Chooses the best seats: `count` side by side, or, if they may be parted, the first that are free.
-- `remembered` is where the search, a field of the tier, left off. Answers the seats, ascending; or
-- nil and why not.
local function best(
  source, row_bytes, bytes, legs, from, to, tier_key, search, remembered, count, together)
  local wanted = tonumber(count)
  if wanted > 1 or legs > 1 then
    if remembered ~= '-' then
      local start = tonumber(remembered or 0)
      local first = first_run(source, row_bytes, bytes, legs, from, to, start, wanted)
      local row = first and floor(first / (row_bytes * 8)) or '-'
      if row ~= start then
        call('HSET', tier_key, search, row)
      end
      if first then
        local seats = { first }
        for i = 2, wanted do
          seats[i] = first + i - 1
        end
        return seats
      end
    end
    -- Where free seats begin at all is what a search for one remembers.
    search = string.gsub(search, '^%d+', '1')
    remembered = call('HGET', tier_key, search)
  end
  if remembered == '-' then
    return nil, 'sold_out'
  end
  local start = tonumber(remembered or 0)
  local at = start * row_bytes
  local seats, n = {}, 0
  local piece_bytes = FIRST_PIECE_BYTES
  while n < wanted and at < bytes do
    local place
    at, place = first_free(source, at, legs)
    if not at then
      break
    elseif wanted == 1 then
      seats[1], n = place, 1
      break
    end
    local piece = call('GETRANGE', source, at * legs, (at + piece_bytes) * legs - 1)
    if #piece == 0 then
      error('CONTRACT a bitmap is not as long as its tier')
    end
    for i = 1, #piece / legs do
      local value = taken_in(piece, i, legs, from, to)
      for column = 0, value < 255 and 7 or -1 do
        if n < wanted and bit.band(value, bit.rshift(128, column)) == 0 then
          n = n + 1
          seats[n] = (at + i - 1) * 8 + column
        end
      end
    end
    at = at + #piece / legs
    piece_bytes = math.min(2 * piece_bytes, LARGEST_PIECE_BYTES)
  end
  local row = seats[1] and floor(seats[1] / (row_bytes * 8)) or '-'
  if row ~= start then
    call('HSET', tier_key, search, row)
  end
  if n < wanted then
    return nil, 'sold_out'
  elseif wanted > 1 and together == 'required' then
    return nil, 'no_adjacent'
  end
  return seats
end

-- Chooses the first fit of a pattern 'column,row:columns,row:columns'. Answers the seats in the
-- order of the pattern; or nil and why not.
local function fitting(
  source, row_bytes, bytes, legs, from, to, tier_key, search, remembered, pattern)
  if remembered == '-' then
    return nil, 'sold_out'
  end
  local row_bits = row_bytes * 8
  local seats, offsets, masks = {}, {}, {}
  local n, reach = 0, 0
  local first, others = string.match(pattern, '^(%d+)(.*)$')
  for below, columns in string.gmatch(',0:0' .. others, ',(%d+):(-?%d+)') do
    local column = first + columns
    if column < 0 or column >= row_bits then
      return nil, 'sold_out'
    end
    n = n + 1
    reach = math.max(reach, below)
    seats[n] = below * row_bits + column
    offsets[n] = below * row_bytes + floor(column / 8) + 1
    masks[n] = bit.rshift(128, column % 8)
  end

  -- The first row from `row` on in which every place is free; '-' if there is none.
  local function first_fit(row)
    local last = bytes / row_bytes - 1 - reach
    local piece_bytes = FIRST_PIECE_BYTES
    while row <= last do
      -- In a full row not even the first seat is free.
      local at = first_free(source, row * row_bytes, legs)
      if not at then
        break
      end
      row = floor(at / row_bytes)
      local rows = math.min(math.max(floor(piece_bytes / row_bytes), 1), last - row + 1)
      local start = row * row_bytes
      local piece =
        call('GETRANGE', source, start * legs, (start + (rows + reach) * row_bytes) * legs - 1)
      for ahead = 0, rows - 1 do
        local fits = true
        for i = 1, n do
          local value = taken_in(piece, ahead * row_bytes + offsets[i], legs, from, to)
          if bit.band(value, masks[i]) ~= 0 then
            fits = false
            break
          end
        end
        if fits then
          return row + ahead
        end
      end
      row = row + rows
      piece_bytes = math.min(2 * piece_bytes, LARGEST_PIECE_BYTES)
    end
    return '-'
  end

  local start = tonumber(remembered or 0)
  local row = first_fit(start)
  if row ~= start then
    call('HSET', tier_key, search, row)
  end
  if row == '-' then
    return nil, 'sold_out'
  end
  for i = 1, n do
    seats[i] = row * row_bits + seats[i]
  end
  return seats
end

-- Chooses these very seats, 'seat.seat' ascending. Answers them; or nil, why not, and which are not
-- free.
local function these(source, bytes, legs, from, to, count, text)
  local seats, n = { 0, 0 }, 0
  for word in string.gmatch(text, '%d+') do
    n = n + 1
    seats[n] = tonumber(word)
  end
  seats[n + 1] = nil
  -- Neighbours, which is what most choose, are looked at in one piece.
  local is_run = seats[n] - seats[1] == n - 1 and n <= LONGEST_RUN and seats[n] < bytes * 8
  if legs == 1 and is_run and call('BITFIELD', source, 'GET', 'u' .. count, seats[1])[1] == 0 then
    return seats
  end
  local fields, asked = {}, 0
  local values, at, value = {}, nil, nil
  for i = 1, n do
    local seat = seats[i]
    if seat < bytes * 8 and legs == 1 then
      fields[asked + 1], fields[asked + 2], fields[asked + 3] = 'GET', 'u1', seat
      asked = asked + 3
    elseif seat < bytes * 8 then
      if floor(seat / 8) ~= at then
        at = floor(seat / 8)
        value = taken_in(call('GETRANGE', source, at * legs, (at + 1) * legs - 1), 1, legs, from, to)
      end
      values[i] = bit.band(value, bit.rshift(128, seat % 8))
    end
  end
  if asked > 0 then
    values = call('BITFIELD', source, unpack(fields))
  end
  local taken
  for i = 1, n do
    -- There is no value for a seat beyond the grid, and no such seat is free.
    if values[i] ~= 0 then
      taken = taken and taken .. '.' .. seats[i] or seats[i]
    end
  end
  if taken then
    return nil, 'seat_taken', taken
  end
  return seats
end

--- hold.lua: hold every line of an order, or none; the same number is answered with the same seats.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
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

local FIRST_LINE_KEY, LINE_KEYS, FIRST_LINE_ARG, LINE_ARGS = 3, 2, 8, 7

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
  local tier_key, source = KEYS[key], KEYS[key + 1]
  local shape = call('HMGET', tier_key, 'rows', 'row_bytes', 'legs', search)
  local row_bytes, legs, first_leg, last_leg = tonumber(shape[2]), tonumber(shape[3]), from + 0, to + 0
  if not row_bytes then
    return { 'sold_out', tier }
  elseif last_leg > legs or not source then
    return redis.error_reply('CONTRACT a line takes a leg that its tier has not')
  end
  local bytes = shape[1] * row_bytes
  local seats, refusal, taken
  if choice == 'best' then
    seats, refusal = best(
      source, row_bytes, bytes, legs, first_leg, last_leg, tier_key, search, shape[4], count, detail)
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
