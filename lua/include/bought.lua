-- bought.lua: how many tickets a buyer holds or has bought.

-- Adds tickets, or takes them back; nobody is remembered with none.
local function add_bought(bought_key, user, tickets)
  local now = tonumber(redis.call('HGET', bought_key, user) or 0) + tickets
  if now > 0 then
    redis.call('HSET', bought_key, user, now)
  else
    redis.call('HDEL', bought_key, user)
  end
end

