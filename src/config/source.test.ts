import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from './config.ts'
import { formatFault } from './fault.ts'
import { type ConfigReport, createConfigSource } from './source.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-source-'))
afterAll(() => rmSync(root, { recursive: true }))

let folders = 0

function start(file: string | undefined, env: Record<string, string> = {}) {
  const cwd = join(root, String(folders++))
  mkdirSync(cwd)
  const path = join(cwd, 'tollgate.yaml')
  if (file !== undefined) writeFileSync(path, file)
  const load = () =>
    loadConfig({ env, cwd, stdoutIsTerminal: false, providerVariables: [], builtInProviderIds: ['sandbox'] })
  const initial = load()
  if ('faults' in initial) throw new Error(initial.faults.map(formatFault).join('\n'))

  const reports: ConfigReport[] = []
  let wake: (() => void) | undefined
  const source = createConfigSource({
    initial,
    load,
    report(report) {
      reports.push(report)
      wake?.()
    },
    // Longer than a step of the file times, so that two writes of a test can be told apart.
    intervalMs: 20,
  })
  return {
    source,
    path,
    env,
    async nextReport(): Promise<ConfigReport> {
      for (;;) {
        const report = reports.shift()
        if (report !== undefined) return report
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

const model = (id: string) => `models:\n  - { id: ${id}, price: free, routes: [{ provider: sandbox, model: echo }] }\n`

test('a good change is in force and handed to the listeners before it is reported', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const heard: string[] = []
  source.onChange((config) => {
    heard.push(...config.models.map(({ id }) => id))
    return undefined
  })
  writeFileSync(path, model('a/two'))
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: [], warnings: [] })
  expect(heard).toEqual(['a/two'])
  expect(source.current.models.map(({ id }) => id)).toEqual(['a/two'])
  expect(Object.isFrozen(source.current)).toBe(true)
  source.close()
})

test('a key that is renewed in its file is in force, also one whose file was missing', async () => {
  const provider = (id: string) =>
    `{ id: ${id}, dialect: openai-chat, base_url: 'http://127.0.0.1:1', api_key: 'file:${id}.key' }`
  const { source, path, nextReport } = start(model('a/one'))
  const keyFile = (id: string) => join(path, '..', `${id}.key`)
  const keys = () => source.current.providers.map(({ apiKey }) => apiKey?.reveal())
  writeFileSync(keyFile('acme'), 'first')
  writeFileSync(path, `providers: [${provider('acme')}]\n`)
  expect([(await nextReport()).kind, keys()]).toEqual(['applied', ['first']])
  writeFileSync(keyFile('acme'), 'second')
  expect([(await nextReport()).kind, keys()]).toEqual(['applied', ['second']])
  writeFileSync(path, `providers: [${provider('acme')}, ${provider('beta')}]\n`)
  expect([(await nextReport()).kind, keys()]).toEqual(['refused', ['second']])
  writeFileSync(keyFile('beta'), 'third')
  expect([(await nextReport()).kind, keys()]).toEqual(['applied', ['second', 'third']])
  source.close()
})

test('a wrong change is reported and the last good one stays in force, until it is mended', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const before = source.current
  let heard = 0
  source.onChange(() => void heard++)
  writeFileSync(path, model('nonsense'))
  const report = await nextReport()
  expect(report.kind === 'refused' && report.faults.map(formatFault)).toEqual([
    'tollgate.yaml:2:11  models[0].id  expected an id of the form creator/model such as acme/large, got "nonsense"',
  ])
  expect(source.current).toBe(before)
  expect(heard).toBe(0)
  writeFileSync(path, model('a/three'))
  expect((await nextReport()).kind).toBe('applied')
  expect(source.current.models.map(({ id }) => id)).toEqual(['a/three'])
  source.close()
})

test('a deleted file is reported and the last good configuration stays in force', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const before = source.current
  rmSync(path)
  expect(await nextReport()).toEqual({ kind: 'deleted', configPath: path })
  expect(source.current).toBe(before)
  writeFileSync(path, model('a/two'))
  expect((await nextReport()).kind).toBe('applied')
  source.close()
})

test('a file that appears is picked up', async () => {
  const { source, path, nextReport } = start(undefined)
  expect(source.current.configFileExists).toBe(false)
  writeFileSync(path, model('a/one'))
  expect((await nextReport()).kind).toBe('applied')
  expect(source.current.models).toHaveLength(1)
  source.close()
})

test('what cannot change while running keeps its value and is named, the rest is applied', async () => {
  const { source, path, nextReport } = start('server: { port: 9000, drain_seconds: 1, log: json, local_models: on }')
  const { dataFolder } = source.current
  const started = '{ port: 9001, host: "::1", data: elsewhere, log: pretty, local_models: off, drain_seconds: 2 }'
  writeFileSync(path, `server: ${started}`)
  expect(await nextReport()).toEqual({
    kind: 'applied',
    needsRestart: ['server.host', 'server.port', 'server.data', 'server.log', 'server.local_models'],
    warnings: [],
  })
  const kept = { port: 9000, host: '127.0.0.1', dataFolder, logFormat: 'json', localModels: true }
  expect(source.current).toMatchObject({ ...kept, drainMs: 2000 })
  source.close()
})

test('secrets are compared by value and named by variable', async () => {
  const before = { TOLLGATE_SECRET: `first-${'x'.repeat(40)}`, DATABASE_URL: 'postgres://db/one' }
  const { source, env, nextReport } = start(undefined, before)
  source.reload()
  env.TOLLGATE_SECRET = `other-${'x'.repeat(40)}`
  source.reload()
  source.close()
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: [], warnings: [] })
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: ['TOLLGATE_SECRET'], warnings: [] })
  expect(source.current.secret?.reveal()).toStartWith('first-')
})

test('a reload that is asked for reads key files again', async () => {
  const keyed = 'providers:\n  - { id: x, dialect: openai-chat, base_url: "http://x/v1", api_key: "file:key" }\n'
  const { source, path, nextReport } = start(model('a/one'))
  writeFileSync(join(path, '..', 'key'), 'sk-one')
  writeFileSync(path, keyed)
  await nextReport()
  expect(source.current.providers[0]?.apiKey?.reveal()).toBe('sk-one')
  writeFileSync(join(path, '..', 'key'), 'sk-two')
  source.reload()
  expect(source.current.providers[0]?.apiKey?.reveal()).toBe('sk-two')
  source.close()
})

test('what a listener takes over later is reported later, and not at all if it could not', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const taking: PromiseWithResolvers<boolean>[] = []
  source.onChange(() => {
    const turn = Promise.withResolvers<boolean>()
    taking.push(turn)
    return turn.promise
  })
  const reported = nextReport()
  let isReported = false
  void reported.then(() => {
    isReported = true
  })
  writeFileSync(path, model('a/two'))
  while (taking.length === 0) await Bun.sleep(5)
  taking[0]?.resolve(false)
  await Bun.sleep(0)
  expect(isReported).toBe(false)
  source.reload()
  await Bun.sleep(0)
  expect(isReported).toBe(false)
  taking[1]?.resolve(true)
  expect(await reported).toMatchObject({ kind: 'applied' })
  source.close()
})

test('a listener that left hears nothing', () => {
  const { source } = start(model('a/one'))
  let heard = 0
  const leave = source.onChange(() => void heard++)
  source.reload()
  leave()
  source.reload()
  source.close()
  expect(heard).toBe(1)
})

test('warnings about the environment are not repeated at every reload', async () => {
  const { source, nextReport } = start(model('a/one'), { TOLLGATE_PROT: '1' })
  source.reload()
  source.close()
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: [], warnings: [] })
})
