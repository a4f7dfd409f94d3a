// nginx as a plain reverse proxy: one worker, kept-alive upstream connections, no buffering. It does no JSON work at
// all and stands for the floor under any proxy on this machine.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import type { Contender } from './contender.ts'
import { freePort, launch } from './launch.ts'

export const nginx: Contender = {
  name: 'nginx',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    // Debian keeps it outside a user's PATH.
    const program = Bun.which('nginx', { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` })
    if (!program) return { absent: 'not installed' }
    const prefix = join(setting.folder, 'nginx')
    mkdirSync(prefix, { recursive: true })
    const port = await freePort()
    writeFileSync(join(prefix, 'nginx.conf'), configuration(port, new URL(setting.upstreamUrl).host))
    const command = [program, '-p', prefix, '-c', join(prefix, 'nginx.conf'), '-e', join(prefix, 'error.log')]
    const launched = await launch({ name: 'nginx', folder: setting.folder, command, port })
    if ('failed' in launched) return { absent: launched.failed }
    const call = (surface: Surface, provider: Surface) =>
      surface === provider ? { model: 'bench/chat', headers: { authorization: 'Bearer x' } } : undefined
    return { version: versionOf(program), running: { ...launched, call } }
  },
}

function configuration(port: number, upstreamHost: string): string {
  // Started by root, the worker would become another user and could not write its temporary files here.
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  return `${user}
daemon off;
worker_processes 1;
pid nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  keepalive_requests 1000000000;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream fake { server ${upstreamHost}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://fake;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`
}

function versionOf(program: string): string {
  const { stderr } = Bun.spawnSync([program, '-v'])
  return /nginx\/\S+/.exec(stderr.toString())?.[0] ?? 'nginx'
}
