--- unlock.lua: give the lock of a buyer's wallet back, if it still is its owner's.
--- @key   lock             string  who owns it; with a time to live
--- @arg   owner            string
--- @reply unlocked
--- @reply not_owned

local lock_key, owner = KEYS[1], ARGV[1]
if call('GET', lock_key) ~= owner then
  return { 'not_owned' }
end
call('UNLINK', lock_key)
return { 'unlocked' }
