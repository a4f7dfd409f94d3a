import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { commandOf, copiesOfLastStage, readDockerfile } from './dockerfile.ts'
import { ask, root } from './site.ts'

// The image without Docker: the same files at the same places, the same start, the same question about its health.

const instructions = readDockerfile(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8'))
const find = (wanted: string) => {
  const found = instructions.findLast(({ name }) => name === wanted)
  if (found === undefined) throw new Error(`the Dockerfile has no ${wanted}`)
  return found
}

test('the files that the Dockerfile copies are enough to start, be healthy, answer and stop', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-image-'))
  try {
    const copies = copiesOfLastStage(instructions)
    expect(copies.length).toBeGreaterThanOrEqual(3)
    for (const [from, to] of copies)
      cpSync(join(root, from), join(folder, to === './' ? from : to), { recursive: true })
    // As `npm ci --omit=dev` leaves them.
    for (const name of [...Object.keys(manifest.dependencies), '.bin/bun']) {
      const link = join(folder, 'node_modules', name)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), link)
    }
    const variables = instructions.filter(({ name }) => name === 'ENV').map(({ rest }) => rest.split('='))
    const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    const port = String(listener.port)
    listener.stop(true)
    const env = {
      PATH: process.env.PATH ?? '',
      ...Object.fromEntries(variables),
      TOLLGATE_HOST: '127.0.0.1',
      TOLLGATE_PORT: port,
      TOLLGATE_DATA: join(folder, 'data'),
    }
    const inside = (words: readonly string[]) => words.map((word) => word.replaceAll('/opt/tollgate', folder))
    const isHealthy = () => Bun.spawnSync(inside(commandOf(find('HEALTHCHECK'))), { env }).exitCode === 0

    expect(isHealthy()).toBe(false)
    const gateway = Bun.spawn(inside(commandOf(find('ENTRYPOINT'))), {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    try {
      const out = gateway.stdout.text()
      while (gateway.exitCode === null && !isHealthy()) await Bun.sleep(50)
      const key = readFileSync(join(folder, 'data/first-key'), 'utf8').trim()
      expect((await ask(`http://127.0.0.1:${port}`, key, 'sandbox/echo')).status).toBe(200)
      gateway.kill('SIGTERM')
      expect(await gateway.exited).toBe(0)
      expect(await out).toContain('"message":"stopping')
    } finally {
      gateway.kill('SIGKILL')
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the image runs as a user without rights, and keeps signals', () => {
  expect(find('USER').rest).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/)
  expect(find('STOPSIGNAL').rest).toBe('SIGTERM')
  // A shell around it would be process 1 and swallow the signal; the launcher becomes the gateway by `exec`.
  expect(find('ENTRYPOINT').rest).toStartWith('[')
  expect(readFileSync(join(root, 'bin/tollgate'), 'utf8')).toMatch(/^exec "\$bun"/m)
})

test('the ignore list excludes nothing that is copied', () => {
  const allowed = readFileSync(join(root, 'deploy/Dockerfile.dockerignore'), 'utf8')
    .split('\n')
    .flatMap((line) => /^!(.+)$/.exec(line)?.[1] ?? [])
  const copied = instructions.filter(({ name, rest }) => name === 'COPY' && !rest.startsWith('--from'))
  const sources = new Set(copied.flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1)))
  expect([...sources].sort()).toEqual(allowed.sort())
})
