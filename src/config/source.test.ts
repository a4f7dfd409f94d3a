import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contentDigest, loadConfig } from './config.ts'
import { formatFault } from './document.ts'
import { type ConfigReport, createConfigSource, watchConfigFile } from './source.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-source-'))
afterAll(() => rmSync(root, { recursive: true }))

let folders = 0
function folder(): string {
  const path = join(root, String(folders++))
  mkdirSync(path)
  return path
}

function start(file: string | undefined, env: Record<string, string> = {}) {
  const cwd = folder()
  const path = join(cwd, 'tollgate.yaml')
  if (file !== undefined) writeFileSync(path, file)
  const load = () =>
    loadConfig({
      env,
      cwd,
      stdoutIsTerminal: false,
      providerVariables: [],
      builtInProviderIds: ['sandbox'],
      builtInModels: [],
    })
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
    // Longer than a step of the file times, so that two writes of a test are two changes.
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

test('applies a valid change and calls the listeners before it reports it', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const notified: string[] = []
  source.onChange((config) => {
    notified.push(...config.models.map(({ id }) => id))
    return undefined
  })
  writeFileSync(path, model('a/two'))
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: [], warnings: [] })
  expect(notified).toEqual(['a/two'])
  expect(source.current.models.map(({ id }) => id)).toEqual(['a/two'])
  expect(Object.isFrozen(source.current)).toBe(true)
  source.close()
})

test('applies a key replaced in its file, also one whose file was missing', async () => {
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

test('reports a wrong change and keeps the last valid configuration until it is corrected', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const before = source.current
  let notified = 0
  source.onChange(() => void notified++)
  writeFileSync(path, model('nonsense'))
  const report = await nextReport()
  expect(report.kind === 'refused' && report.faults.map(formatFault)).toEqual([
    'tollgate.yaml:2:11  models[0].id  expected an id of the form creator/model such as acme/large, got "nonsense"',
  ])
  expect(source.current).toBe(before)
  expect(notified).toBe(0)
  writeFileSync(path, model('a/three'))
  expect((await nextReport()).kind).toBe('applied')
  expect(source.current.models.map(({ id }) => id)).toEqual(['a/three'])
  source.close()
})

test('reports a deleted file and keeps the last valid configuration', async () => {
  const { source, path, nextReport } = start(model('a/one'))
  const before = source.current
  rmSync(path)
  expect(await nextReport()).toEqual({ kind: 'deleted', configPath: path })
  expect(source.current).toBe(before)
  writeFileSync(path, model('a/two'))
  expect((await nextReport()).kind).toBe('applied')
  source.close()
})

test('picks up a file that appears', async () => {
  const { source, path, nextReport } = start(undefined)
  expect(source.current.configFileExists).toBe(false)
  writeFileSync(path, model('a/one'))
  expect((await nextReport()).kind).toBe('applied')
  expect(source.current.models).toHaveLength(1)
  source.close()
})

test('keeps and names settings that need a restart, and applies the rest', async () => {
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

test('an explicit reload reads key files again', async () => {
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

test('reports a change once an asynchronous listener has applied it, and not if it could not', async () => {
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

test('does not repeat warnings about the environment at every reload', async () => {
  const { source, nextReport } = start(model('a/one'), { TOLLGATE_PROT: '1' })
  source.reload()
  source.close()
  expect(await nextReport()).toEqual({ kind: 'applied', needsRestart: [], warnings: [] })
})

/** Watches and counts; `next` waits for the change after the ones already waited for. */
function watching(path: string, content: string | undefined) {
  let seen = 0
  let waitedFor = 0
  let wake: (() => void) | undefined
  const close = watchConfigFile({
    path,
    digest: content === undefined ? undefined : contentDigest(content),
    // Longer than a step of the file times, so that two writes of a test are two changes.
    intervalMs: 20,
    onChange() {
      seen++
      wake?.()
    },
  })
  return {
    count: () => seen,
    close,
    async next(): Promise<void> {
      waitedFor++
      while (seen < waitedFor) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** A second watch of the same pace: when it has noticed three changes, every other one has looked several times. */
async function severalLooks(base: string): Promise<void> {
  const path = join(base, 'pace')
  const pace = watching(path, undefined)
  for (const beat of ['a', 'b', 'c']) {
    writeFileSync(path, beat)
    await pace.next()
  }
  pace.close()
  rmSync(path)
}

const renameOver = (path: string, content: string): void => {
  writeFileSync(`${path}.new`, content)
  renameSync(`${path}.new`, path)
}

test.each([
  [
    'a write in place',
    'one',
    'one',
    [(path: string) => writeFileSync(path, 'two'), (path: string) => writeFileSync(path, 'six')],
  ],
  ['a file that is renamed over it', 'one', 'one', [(path: string) => renameOver(path, 'two')]],
  [
    'that the file appears, disappears and comes back',
    undefined,
    undefined,
    [
      (path: string) => writeFileSync(path, 'one'),
      (path: string) => rmSync(path),
      (path: string) => writeFileSync(path, 'one'),
    ],
  ],
  ['a change between reading the file and watching it', 'two', 'one', [() => {}]],
] as const)('notices %s', async (_what, content, read, changes) => {
  const base = folder()
  const path = join(base, 'tollgate.yaml')
  if (content !== undefined) writeFileSync(path, content)
  const watch = watching(path, read)
  if (content === read) await severalLooks(base)
  for (const change of changes) {
    change(path)
    await watch.next()
  }
  watch.close()
  expect(watch.count()).toBe(changes.length)
})

test('notices that a link in its path points elsewhere, as with mounted ConfigMaps', async () => {
  const base = folder()
  for (const version of ['v1', 'v2']) {
    mkdirSync(join(base, version))
    writeFileSync(join(base, version, 'tollgate.yaml'), version)
  }
  symlinkSync('v1', join(base, '..data'))
  symlinkSync('..data/tollgate.yaml', join(base, 'tollgate.yaml'))
  const watch = watching(join(base, 'tollgate.yaml'), 'v1')
  await severalLooks(base)
  symlinkSync('v2', join(base, '..data_new'))
  renameSync(join(base, '..data_new'), join(base, '..data'))
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(1)
})

test('ignores a write with the same content', async () => {
  const base = folder()
  const path = join(base, 'tollgate.yaml')
  writeFileSync(path, 'one')
  const watch = watching(path, 'one')
  utimesSync(path, 1, 1)
  await severalLooks(base)
  renameOver(path, 'one')
  await severalLooks(base)
  watch.close()
  expect(watch.count()).toBe(0)
})

test('reports nothing after close', async () => {
  const path = join(folder(), 'tollgate.yaml')
  writeFileSync(path, 'one')
  const closed = watching(path, 'one')
  closed.close()
  const open = watching(path, 'one')
  for (const content of ['two', 'three']) {
    writeFileSync(path, content)
    await open.next()
  }
  open.close()
  expect(closed.count()).toBe(0)
})

test('reads the settings once for each configuration in effect', async () => {
  const path = join(folder(), 'tollgate.yaml')
  writeFileSync(path, model('a/one'))
  const load = () =>
    loadConfig({
      env: {},
      cwd: join(path, '..'),
      stdoutIsTerminal: false,
      providerVariables: [],
      builtInProviderIds: ['sandbox'],
      builtInModels: [],
    })
  const initial = load()
  if ('faults' in initial) throw new Error(initial.faults.map(formatFault).join('\n'))
  const read: string[] = []
  const source = createConfigSource({
    initial,
    load,
    report() {},
    describe({ models }) {
      read.push(models.map(({ id }) => id).join())
      return models.map(({ id }) => ({ name: `models.${id}`, value: '', source: '' }))
    },
  })
  const names = () => source.settings().map(({ name }) => name)
  expect([names(), names()]).toEqual([['models.a/one'], ['models.a/one']])
  writeFileSync(path, model('a/two'))
  await source.reload()
  expect([names(), names()]).toEqual([['models.a/two'], ['models.a/two']])
  expect(read).toEqual(['a/one', 'a/two'])
  source.close()
})
