-- lines.lua: the lines of an order as text, 'tier,from,to,seat.seat' joined by ';'.

-- Seats from 'seat.seat'.
local function unpack_seats(text)
  local seats = {}
  for seat in string.gmatch(text, '%d+') do
    seats[#seats + 1] = tonumber(seat)
  end
  return seats
end

-- One line as text.
local function pack_line(tier, from, to, seats)
  return tier .. ',' .. from .. ',' .. to .. ',' .. table.concat(seats, '.')
end

-- The parts of a hold record, 'deadline|content|tickets|lines|user'; nil if it is anything else.
local function unpack_record(record)
  return string.match(record, '^(-?%d+)|(%x+)|(%d+)|([^|]*)|(.+)$')
end

