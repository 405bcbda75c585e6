-- lines.lua: the lines of an order as text, 'tier,from,to,seat.seat' joined by ';'.

-- Seats from 'seat.seat'.
local function unpack_seats(text)
  local seats = {}
  for seat in string.gmatch(text, '%d+') do
    seats[#seats + 1] = tonumber(seat)
  end
  return seats
end

-- Reads lines; nil if the text is anything else.
local function unpack_lines(text)
  local lines = {}
  for line in string.gmatch(text, '[^;]+') do
    local tier, from, to, seats = string.match(line, '^([^,]+),(%d+),(%d+),([%d.]+)$')
    if not tier then
      return nil
    end
    lines[#lines + 1] = {
      tier = tier, from = tonumber(from), to = tonumber(to), seats = unpack_seats(seats),
    }
  end
  return lines
end

-- One line as text.
local function pack_line(tier, from, to, seats)
  return tier .. ',' .. from .. ',' .. to .. ',' .. table.concat(seats, '.')
end

-- The parts of a hold record, 'deadline|content|tickets|lines|user'; nil if it is anything else.
local function unpack_record(record)
  return string.match(record, '^(-?%d+)|(%x+)|(%d+)|([^|]*)|(.+)$')
end

