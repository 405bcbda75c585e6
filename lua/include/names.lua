-- names.lua: what every script uses again and again, looked up once.

local call, KEYS, ARGV = redis.call, KEYS, ARGV
local floor, tonumber = math.floor, tonumber

