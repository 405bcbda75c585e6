-- held.lua: the lines of a hold.

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

