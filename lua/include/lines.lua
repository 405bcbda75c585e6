-- lines.lua: lines and their seats as text.

-- Seats from 'seat.seat'.
local function unpack_seats(text)
  local seats = {}
  for seat in string.gmatch(text, '%d+') do
    seats[#seats + 1] = tonumber(seat)
  end
  return seats
end

-- Reads lines, 'tier,from,to,seat.seat' joined by ';'; nil if the text is anything else.
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

