-- bought.lua: how many tickets a buyer holds or has bought.

-- Adds tickets to what the buyer had, or takes them back; nobody is remembered with none.
local function add_bought(sale_key, buyer, had, tickets)
  local now = (had or 0) + tickets
  if now > 0 then
    call('HSET', sale_key, buyer, now)
  else
    call('HDEL', sale_key, buyer)
  end
end

