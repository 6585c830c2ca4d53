// Configurations of nginx for the bench: the upstream, a plain proxy, and the rival, a proxy that asks Redis from Lua
// once per request over pooled connections (what OpenResty limiters do).
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Limit } from './contender.ts';

const BODY = 'x'.repeat(1_023);

export interface NginxOptions {
  /** Of the bench's own; gets the configuration and nginx's temporary folders. */
  readonly folder: string;
  readonly name: string;
  readonly port: number;
}

/** Answers 200 with 1 kB, over HTTP/2 too on a port of its own. Returns the configuration's path. */
export async function writeUpstream(options: NginxOptions, http2Port?: number): Promise<string> {
  const http2 =
    http2Port === undefined ? [] : [`listen 127.0.0.1:${String(http2Port)} http2 backlog=1024;`];
  return writeNginx(options, {
    http: [],
    server: [...http2, `location / { return 200 "${BODY}"; }`],
  });
}

export async function writePlainProxy(options: NginxOptions, upstream: number): Promise<string> {
  return writeNginx(options, {
    http: upstreamLines(upstream),
    server: [`location / { ${PROXY} }`],
  });
}

export async function writeLuaLimiter(
  options: NginxOptions,
  {
    upstream,
    redis,
    limit,
  }: { readonly upstream: number; readonly redis: number; readonly limit: Limit },
): Promise<string> {
  await writeFile(path.join(options.folder, 'limiter.lua'), limiterLua(redis, limit));
  const lua = [
    `lua_package_path "${options.folder}/?.lua;/usr/share/lua/5.1/?.lua;;";`,
    'lua_socket_log_errors off;',
    'init_by_lua_block { limiter = require "limiter" }',
  ];
  return writeNginx(options, {
    modules: LUA_MODULES,
    http: [...lua, ...upstreamLines(upstream)],
    server: [`location / { access_by_lua_block { return limiter.check() } ${PROXY} }`],
  });
}

/** Where Debian's packages put what the Lua rival needs. */
export const LUA_MODULES: readonly string[] = [
  '/usr/lib/nginx/modules/ndk_http_module.so',
  '/usr/lib/nginx/modules/ngx_http_lua_module.so',
];
export const LUA_REDIS_CLIENT = '/usr/share/lua/5.1/nginx/redis.lua';

const PROXY = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://up;';

function upstreamLines(port: number): string[] {
  return [
    `upstream up { server 127.0.0.1:${String(port)}; keepalive 128; keepalive_requests 1000000000; }`,
  ];
}

interface Directives {
  readonly modules?: readonly string[];
  readonly http: readonly string[];
  readonly server: readonly string[];
}

async function writeNginx(
  { folder, name, port }: NginxOptions,
  { modules = [], http, server }: Directives,
): Promise<string> {
  const own = path.join(folder, name);
  await mkdir(own, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${own}/${kind};`,
  );
  const file = path.join(own, 'nginx.conf');
  const text = [
    ...modules.map((module) => `load_module ${module};`),
    'user root; worker_processes 1; daemon off;',
    `pid ${own}/nginx.pid; error_log ${own}/error.log error;`,
    'events { worker_connections 4096; }',
    'http {',
    'access_log off; default_type text/plain; keepalive_requests 1000000000; keepalive_timeout 3600s;',
    ...temporary,
    ...http,
    `server { listen 127.0.0.1:${String(port)} backlog=1024; ${server.join(' ')} }`,
    '}',
  ];
  await writeFile(file, text.join('\n'));
  return file;
}

/** A token bucket in one script call, the way such limiters are written: floats, read, refill, write back. */
function limiterLua(redisPort: number, { capacity, perSecond }: Limit): string {
  return `
local redis = require "nginx.redis"
local M = {}
local script = [[
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('HMGET', KEYS[1], 't', 'n')
local last, level = tonumber(state[1]) or now, tonumber(state[2]) or burst
if now < last then last = now end
level = math.min(burst, level + (now - last) * rate / 1000000)
local granted = 0
if level >= 1 then level = level - 1; granted = 1 end
redis.call('HSET', KEYS[1], 't', string.format('%.0f', now), 'n', tostring(level))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
return {granted, math.floor(level * 1000)}
]]
local sha = (ngx.sha1_bin(script):gsub(".", function(c) return string.format("%02x", c:byte()) end))
function M.check()
  local key = ngx.var.http_x_api_key or "none"
  local rate, burst = ${String(perSecond)}, ${String(capacity)}
  if key == "deny" then rate, burst = 1 / 3600, 1 end
  local client = redis:new()
  client:set_timeout(50)
  if not client:connect("127.0.0.1", ${String(redisPort)}) then return end
  local reply, failure = client:evalsha(sha, 1, "rl:" .. key, rate, burst)
  if not reply and failure and failure:find("NOSCRIPT", 1, true) then
    reply = client:eval(script, 1, "rl:" .. key, rate, burst)
  end
  if not reply then client:close(); return end
  client:set_keepalive(60000, 64)
  if reply[1] == 0 then
    ngx.header["Retry-After"] = "1"
    return ngx.exit(429)
  end
end
return M
`;
}
