// nginx in front of the replicas, with the file that deploy/compose ships; only the names of the gateways and the port
// are put in.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../../parts/engines.ts'
import { freePort } from '../../parts/free-port.ts'
import type { Balancer } from './balancer.ts'
import type { Fleet } from './fleet.ts'
import { until } from './proof.ts'

export interface Nginx extends Balancer, AsyncDisposable {}

export interface Fronted extends Pick<Fleet, 'key'> {
  readonly members: readonly Pick<Fleet['members'][number], 'url'>[]
}

const shipped = join(import.meta.dir, '..', '..', '..', 'deploy', 'compose', 'nginx.conf')

/** undefined = not installed. Debian puts it where only root looks for programs. */
export function findNginx(): string | undefined {
  return Bun.which('nginx', { PATH: `${process.env.PATH}:/usr/sbin` }) ?? undefined
}

/** In front of these, some of which may not listen. */
export async function startNginx(fleet: Fronted): Promise<Nginx> {
  const program = findNginx()
  if (program === undefined) throw new Error('nginx is not installed; ask findNginx first')
  const folder = createThrowAwayFolder()
  // Started by root, nginx writes large bodies as another user.
  chmodSync(folder.path, 0o755)
  const port = freePort()
  const serversAs = (block: string): string => {
    const line = block.slice(0, block.indexOf('\n') + 1)
    return fleet.members.map(({ url }) => line.replace('gateway-1:8080', new URL(url).host)).join('')
  }
  const config = readFileSync(shipped, 'utf8')
    .replace(/( *server gateway-\d:8080.*\n)+/g, serversAs)
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replaceAll('/tmp/', `${folder.path}/`)
  const path = join(folder.path, 'nginx.conf')
  writeFileSync(path, config)
  const child = Bun.spawn([program, '-c', path, '-p', folder.path, '-g', 'daemon off;'], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const killAtExit = () => child.kill()
  process.on('exit', killAtExit)
  const url = `http://127.0.0.1:${port}`
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    return await fetch(`${url}/healthz`).then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  return {
    url,
    key: fleet.key,
    isAlive: () => true,
    async [Symbol.asyncDispose]() {
      process.off('exit', killAtExit)
      child.kill()
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}
