-- search.lua: the three ways to choose seats, over the bitmap of what is taken on a whole journey.
--
-- Searches begin at a remembered row, leave full stretches to BITPOS, which passes over them at the
-- speed of memory, and read the rest in pieces that grow from few bytes to many.

local FIRST_PIECE_BYTES = 32
local LARGEST_PIECE_BYTES = 512
local ZERO = 48

-- Three tables, one digit for each value of a byte. As strings they are constants of the script and
-- cost nothing until they are looked at. What they count are free seats, zero bits.
-- At the left end of the byte.
local LEADING =
  '8766555544444444333333333333333322222222222222222222222222222222'
  .. '1111111111111111111111111111111111111111111111111111111111111111'
  .. '0000000000000000000000000000000000000000000000000000000000000000'
  .. '0000000000000000000000000000000000000000000000000000000000000000'
-- At the right end of the byte.
local TRAILING =
  '8010201030102010401020103010201050102010301020104010201030102010'
  .. '6010201030102010401020103010201050102010301020104010201030102010'
  .. '7010201030102010401020103010201050102010301020104010201030102010'
  .. '6010201030102010401020103010201050102010301020104010201030102010'
-- In the longest run within the byte.
local LONGEST =
  '8766555544444444433333333333333354332222322222224322222232222222'
  .. '6544333332222222432221113211211154332222321121114322211132112111'
  .. '7655444433333333432222223222222254332222321121114322211132112111'
  .. '6544333332222222432221113211211154332222321121114322211132112110'

-- Some bytes of a bitmap, fewer at its end. A tier without its bitmap would make a search go on for
-- ever.
local function piece_of(source, at, bytes)
  local piece = redis.call('GETRANGE', source, at, at + bytes - 1)
  if #piece == 0 then
    error('CONTRACT a bitmap is not as long as its tier')
  end
  return piece
end

-- True if a bit of a byte, counted from the left, is 0.
local function is_free(byte, column)
  return bit.band(byte, bit.rshift(128, column)) == 0
end

-- The leftmost run of `count` free seats within one byte that has one.
local function run_within(byte, count)
  local run = 0
  for column = 0, 7 do
    run = is_free(byte, column) and run + 1 or 0
    if run == count then
      return column + 1 - count
    end
  end
end

-- The first of `count` free seats side by side, leftmost in the first row that has them, from
-- `row` on; nil if no row has.
local function first_run(source, grid, row, count)
  local row_bytes = grid.row_bytes
  local at = row * row_bytes
  local in_row = 0
  local run, first = 0, 0
  local piece_bytes = FIRST_PIECE_BYTES
  while at < grid.bytes do
    local piece = piece_of(source, at, piece_bytes)
    for i = 1, #piece do
      if in_row == row_bytes then
        in_row, run = 0, 0
      end
      in_row = in_row + 1
      local byte = string.byte(piece, i)
      if byte == 255 then
        run = 0
      else
        if run == 0 then
          first = (at + i - 1) * 8
        end
        local leading = string.byte(LEADING, byte + 1) - ZERO
        if run + leading >= count then
          return first
        elseif leading == 8 then
          run = run + 8
        elseif string.byte(LONGEST, byte + 1) - ZERO >= count then
          return (at + i - 1) * 8 + run_within(byte, count)
        else
          run = string.byte(TRAILING, byte + 1) - ZERO
          first = (at + i) * 8 - run
        end
      end
    end
    at = at + #piece
    piece_bytes = math.min(2 * piece_bytes, LARGEST_PIECE_BYTES)
    if run == 0 and at < grid.bytes then
      local place = redis.call('BITPOS', source, 0, at, -1)
      if place < 0 then
        return nil
      end
      at = math.floor(place / 8)
      in_row = at % row_bytes
    end
  end
  return nil
end

-- The first free seats in the order of the bitmap, at most `count`, from `row` on.
local function first_free(source, grid, row, count)
  local seats = {}
  local at = row * grid.row_bytes
  while #seats < count and at < grid.bytes do
    local place = redis.call('BITPOS', source, 0, at, -1)
    if place < 0 then
      break
    end
    if count == 1 then
      return { place }
    end
    at = math.floor(place / 8)
    local piece = piece_of(source, at, FIRST_PIECE_BYTES)
    for i = 1, #piece do
      local byte = string.byte(piece, i)
      if byte ~= 255 then
        for column = 0, 7 do
          if #seats < count and is_free(byte, column) then
            seats[#seats + 1] = (at + i - 1) * 8 + column
          end
        end
      end
    end
    at = at + #piece
  end
  return seats
end

-- Chooses these very seats: none if all are free, else those that are not.
local function taken_of(source, grid, seats)
  local fields, asked, taken = {}, {}, {}
  for _, seat in ipairs(seats) do
    if seat < grid.places then
      local n = #fields
      fields[n + 1], fields[n + 2], fields[n + 3] = 'GET', 'u1', seat
    end
  end
  if #fields > 0 then
    asked = redis.call('BITFIELD', source, unpack(fields))
  end
  local next_asked = 1
  for _, seat in ipairs(seats) do
    local is_taken = true
    if seat < grid.places then
      is_taken = asked[next_asked] == 1
      next_asked = next_asked + 1
    end
    if is_taken then
      taken[#taken + 1] = seat
    end
  end
  return taken
end

-- Chooses the best seats from `row` on ('-': no run is left). Answers the seats, or nil and why
-- not; and the first row that may still hold such a run.
local function best(source, grid, row, count, together)
  if row ~= '-' then
    local first
    if count == 1 then
      first = first_free(source, grid, row, 1)[1]
    else
      first = first_run(source, grid, row, count)
    end
    if first then
      local seats = {}
      for i = 1, count do
        seats[i] = first + i - 1
      end
      return seats, nil, math.floor(first / (grid.row_bytes * 8))
    end
  end
  local scattered = first_free(source, grid, 0, count)
  if #scattered < count then
    return nil, 'sold_out', '-'
  elseif together == 'required' then
    return nil, 'no_adjacent', '-'
  end
  return scattered, nil, '-'
end

-- The places of a pattern 'column,row:columns,row:columns' relative to the row of the first seat,
-- and how many rows it reaches down.
local function pattern_of(text)
  local first = tonumber(string.match(text, '^%d+'))
  local places, reach = { { row = 0, column = first } }, 0
  for row, column in string.gmatch(text, ',(%d+):(-?%d+)') do
    local place = { row = tonumber(row), column = first + tonumber(column) }
    places[#places + 1] = place
    reach = math.max(reach, place.row)
  end
  return places, reach
end

-- The first row from `row` on in which every place of a pattern is free; nil if there is none.
local function first_fit(source, grid, row, places, reach)
  local row_bytes = grid.row_bytes
  local row_bits = row_bytes * 8
  local last = grid.rows - 1 - reach
  local offsets, masks = {}, {}
  for i, place in ipairs(places) do
    if place.column < 0 or place.column >= row_bits then
      return nil
    end
    offsets[i] = place.row * row_bytes + math.floor(place.column / 8) + 1
    masks[i] = bit.rshift(128, place.column % 8)
  end
  local piece_bytes = FIRST_PIECE_BYTES
  while row <= last do
    -- In a full row not even the first seat is free.
    local place = redis.call('BITPOS', source, 0, row * row_bytes, -1)
    if place < 0 then
      return nil
    end
    row = math.floor(place / row_bits)
    local rows = math.min(math.max(math.floor(piece_bytes / row_bytes), 1), last - row + 1)
    local start = row * row_bytes
    local piece = piece_of(source, start, (rows + reach) * row_bytes)
    for ahead = 0, rows - 1 do
      local fits = true
      for i = 1, #offsets do
        if bit.band(string.byte(piece, ahead * row_bytes + offsets[i]), masks[i]) ~= 0 then
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
  return nil
end

-- Chooses the first fit of a pattern from `row` on ('-': it fits nowhere). Answers the seats in
-- the order of the pattern, or nil; and the first row in which it may still fit.
local function fitting(source, grid, row, places, reach)
  if row ~= '-' then
    row = first_fit(source, grid, row, places, reach)
  end
  if not row or row == '-' then
    return nil, 'sold_out', '-'
  end
  local seats = {}
  for i, place in ipairs(places) do
    seats[i] = (row + place.row) * grid.row_bytes * 8 + place.column
  end
  return seats, nil, row
end

