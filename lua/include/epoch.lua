-- epoch.lua: the fence after a total loss of Redis.

-- True if the sale is loaded, and under the epoch that the caller knows.
local function is_loaded(sale_key, epoch)
  return redis.call('HGET', sale_key, 'epoch') == epoch
end

