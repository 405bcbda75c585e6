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
-- Of a tier of one leg, most of which is gone by in one call.
local LARGEST_SKIPPED_BYTES = 4096

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

-- The first row from `row` on in which `count` free seats lie side by side; nil if no row has them. If all of it was
-- read, the piece of the bitmap that it is in, and how many bytes of places lie before it there.
local function first_row(source, row_bytes, bytes, legs, from, to, row, count)
  -- Three tables, one digit for each value of a byte. What they count are free seats, zero bits: at
  -- the left end of the byte, at its right end, and in the longest run within. As strings they are
  -- constants of the script and cost nothing until they are looked at; each must be one literal.
  local LEADING =
    '8766555544444444333333333333333322222222222222222222222222222222111111111111111111111111111111111111111111111111111111111111111100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'
  local TRAILING =
    '8010201030102010401020103010201050102010301020104010201030102010601020103010201040102010301020105010201030102010401020103010201070102010301020104010201030102010501020103010201040102010301020106010201030102010401020103010201050102010301020104010201030102010'
  local LONGEST =
    '8766555544444444433333333333333354332222322222224322222232222222654433333222222243222111321121115433222232112111432221113211211176554444333333334322222232222222543322223211211143222111321121116544333332222222432221113211211154332222321121114322211132112110'
  -- What a search for two or more goes by behind a full byte: free seats, if any, that have no free neighbour. One
  -- `string.find` goes by them all, many times faster than a loop.
  local SKIPPED =
    '^[\255\171\173\175\181\183\187\189\191\213\215\219\221\223\235\237\239\245\247\251\253]*'
  local ZERO = 48
  local byte = string.byte
  local is_one_leg = legs == 1
  local at = row * row_bytes
  local run = 0
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
          i = select(2, string.find(piece, SKIPPED, i + 1)) + 1
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
        if (at + i - 1) % row_bytes == 0 then
          -- A run does not cross the end of its row.
          run = 0
        end
        if run + byte(LEADING, value + 1) - ZERO >= count or byte(LONGEST, value + 1) - ZERO >= count then
          local found = floor((at + i - 1) / row_bytes)
          local before = found * row_bytes - at
          if before >= 0 and before + row_bytes <= length then
            return found, piece, before
          end
          return found
        end
        run = value == 0 and run + 8 or byte(TRAILING, value + 1) - ZERO
        i = i + 1
      end
    end
    at = at + length
    piece_bytes = math.min(2 * piece_bytes, is_one_leg and LARGEST_SKIPPED_BYTES or LARGEST_PIECE_BYTES)
    if run == 0 and at < bytes then
      at = first_free(source, at, legs)
      if not at then
        return nil
      end
    end
  end
  return nil
end

-- The column where `count` free seats of a row begin whose centre is nearest to the row's middle, of equal ones the
-- left; without a single free seat beside them if any such seats of the row are. `middle` is twice its column, and
-- `values` is what is taken of each eight places. Nil if there are none, and the length of the longest run.
local function nearest(values, count, middle)
  -- Farther than any row is long.
  local SINGLE = 2 ^ 20
  -- Twice the column where they would begin in an empty row, and the column at its left.
  local ideal = middle - count + 1
  local start = floor(ideal / 2)
  local first, distance, longest, run = nil, 2 * SINGLE, 0, 0
  for i = 1, #values + 1 do
    local value = values[i] or 255
    if value == 0 then
      run = run + 8
    elseif value < 255 or run > 0 then
      local column, weight = 8 * i - 8, 128
      repeat
        if value < weight then
          run = run + 1
        else
          value = value - weight
          if run > longest then
            longest = run
          end
          if run >= count then
            -- The seats may lie from `least` to `most`, but for one place from either.
            local least, most = column - run, column - count
            local at = start
            if at <= least then
              at = least
            elseif at >= most then
              at = most
            elseif at == least + 1 or at == most - 1 then
              local left, right = at - 1, at + 1
              if left == least + 1 then
                left = least
              end
              if right == most - 1 then
                right = most
              end
              at = 2 * right - ideal < ideal - 2 * left and right or left
            end
            local way = 2 * at - ideal
            if way < 0 then
              way = -way
            end
            local leaves_single = most == least + 1
            if leaves_single then
              way = way + SINGLE
            end
            if way < distance then
              first, distance = at, way
            end
            if at >= start and not leaves_single then
              -- All others are farther.
              return first
            end
          end
          run = 0
        end
        column, weight = column + 1, weight / 2
      until weight < 1 or run == 0 and value == 2 * weight - 1
    end
  end
  return first, longest
end

-- Chooses the best seats: `count` side by side, or, if they may be parted, of the first rows that have any; of the last
-- of those the nearest to its middle. `remembered` is where the search, a field of the tier, left off; `middle` is twice
-- the column of the middle of every row, nil if the rows differ. Answers the seats, ascending; or nil and why not.
local function best(
  source, middles, row_bytes, bytes, legs, from, to, tier_key, search, remembered, middle, count, together)
  local wanted, row_bits = tonumber(count), row_bytes * 8
  local seats, kept = {}, 0
  -- The row to look at first: most often it is the row of the last call.
  local is_search = (wanted > 1 or legs > 1) and remembered ~= '-' and bytes > 0
  local start = is_search and tonumber(remembered or 0) or nil
  local row, piece, before = start, nil, nil
  if start and legs > 1 then
    -- The rows of a coach are short: half of the calls go on to the next.
    row, piece, before = first_row(source, row_bytes, bytes, legs, from, to, start, wanted)
    if (row or '-') ~= start then
      call('HSET', tier_key, search, row or '-')
    end
    start = nil
  end
  while kept < wanted do
    if not row then
      if wanted > 1 or legs > 1 then
        -- Where free seats begin at all is what a search for one remembers.
        search = string.gsub(search, '^%d+', '1')
        remembered = call('HGET', tier_key, search)
      end
      if remembered == '-' then
        return nil, 'sold_out'
      end
      local first = tonumber(remembered or 0)
      local at = first * row_bytes
      local n, piece_bytes = 0, FIRST_PIECE_BYTES
      while n < wanted and at < bytes do
        local place
        at, place = first_free(source, at, legs)
        if not at then
          break
        elseif wanted == 1 and legs == 1 then
          seats[1], n = place, 1
          break
        end
        local some = call('GETRANGE', source, at * legs, (at + piece_bytes) * legs - 1)
        if #some == 0 then
          error('CONTRACT a bitmap is not as long as its tier')
        end
        for i = 1, #some / legs do
          local value = taken_in(some, i, legs, from, to)
          for column = 0, value < 255 and 7 or -1 do
            if n < wanted and bit.band(value, bit.rshift(128, column)) == 0 then
              n = n + 1
              seats[n] = (at + i - 1) * 8 + column
            end
          end
        end
        at = at + #some / legs
        piece_bytes = math.min(2 * piece_bytes, LARGEST_PIECE_BYTES)
      end
      row = seats[1] and floor(seats[1] / row_bits) or '-'
      if row ~= first then
        call('HSET', tier_key, search, row)
      end
      if n < wanted then
        return nil, 'sold_out'
      elseif wanted > 1 and together == 'required' then
        return nil, 'no_adjacent'
      end
      -- They are all that is free in the rows before the last one, in which the others are chosen anew.
      row, kept = floor(seats[n] / row_bits), n
      while kept > 0 and seats[kept] >= row * row_bits do
        kept = kept - 1
      end
    end

    if not piece then
      piece = call('GETRANGE', source, row * row_bytes * legs, (row + 1) * row_bytes * legs - 1)
      before = 0
      if #piece == 0 then
        error('CONTRACT a bitmap is not as long as its tier')
      end
    end
    local values
    if legs == 1 then
      values = { string.byte(piece, before + 1, before + row_bytes) }
    else
      values = {}
      for i = 1, row_bytes do
        values[i] = taken_in(piece, before + i, legs, from, to)
      end
    end
    local size, centre = wanted - kept, middle or 0
    local column, longest = nearest(values, size, centre)
    if not middle and (column or row ~= start) then
      -- A tier that was loaded without has its best seats at the left.
      local high, low = string.byte(call('GETRANGE', middles, 2 * row, 2 * row + 1), 1, 2)
      centre = high and 256 * high + low or 0
      column, longest = nearest(values, size, centre)
    end
    if not column and row == start then
      start = nil
      row, piece, before = first_row(source, row_bytes, bytes, legs, from, to, row + 1, wanted)
      call('HSET', tier_key, search, row or '-')
    else
      local parted = not column
      while not column or kept + size < wanted do
        if longest == 0 then
          -- Else it would look for ever.
          error('CONTRACT a row has free seats and has none')
        end
        for place = column or 1, column and column + size - 1 or 0 do
          kept = kept + 1
          seats[kept] = row * row_bits + place
          local i = floor(place / 8) + 1
          values[i] = bit.bor(values[i], bit.rshift(128, place % 8))
        end
        size = math.min(longest or size, wanted - kept)
        column, longest = nearest(values, size, centre)
      end
      for place = row * row_bits + column, row * row_bits + column + size - 1 do
        kept = kept + 1
        seats[kept] = place
      end
      if parted then
        table.sort(seats)
      end
    end
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

