// Whether a request costs more where there is much to choose from: CPU per request of a gateway with 100,000 keys and
// 5,000 models against one with 10 and 10, both on the sandbox. Run by hand: `bun run bench/keys-and-models.ts`.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import type { ProjectId } from '../src/kernel/ids.ts'
import { openDataFolder } from '../src/store/data-folder.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { createApiKey, createVerifier } from '../src/tenancy/api-key.ts'
import { insertKey } from '../src/tenancy/records.ts'
import { deriveSubkey, loadMasterSecret } from '../src/tenancy/secrets.ts'
import { type Launched, launch } from './contenders/launch.ts'
import { costOf } from './measure.ts'
import { median } from './statistics.ts'

interface Size {
  readonly name: string
  readonly keys: number
  readonly models: number
}

const small: Size = { name: 'small', keys: 10, models: 10 }
const large: Size = { name: 'large', keys: 100_000, models: 5_000 }

const rounds = 7
const requestsPerRound = 8_000
const connections = 16
const keysPerTransaction = 1_000

interface Running {
  readonly launched: Launched
  readonly keys: readonly string[]
  readonly models: number
}

// The opening credit of $5.00 lasts: a request costs some $0.00000002.
function configuration({ models }: Size): string {
  const price = { input: '0.001', output: '0.001' }
  const entry = (_: unknown, at: number) => ({
    id: `bench/model-${at}`,
    price,
    max_output_tokens: 1000,
    routes: [{ provider: 'sandbox', model: 'echo' }],
  })
  return JSON.stringify({ models: Array.from({ length: models }, entry) })
}

async function start(folder: string, size: Size): Promise<Launched> {
  const launched = await launch({
    name: size.name,
    folder,
    command: [join(import.meta.dir, '..', 'bin', 'tollgate')],
    environment: {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA: join(folder, `${size.name}-data`),
      TOLLGATE_CONFIG: join(folder, `${size.name}.json`),
      TOLLGATE_LOG: 'json',
      TOLLGATE_LOCAL_MODELS: 'off',
    },
  })
  if ('failed' in launched) throw new Error(launched.failed)
  return launched
}

/** The first start makes the project and the secret; the keys are then put in behind its back, which is much faster. */
async function prepare(folder: string, size: Size): Promise<Running> {
  const data = join(folder, `${size.name}-data`)
  mkdirSync(data, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, `${size.name}.json`), configuration(size))
  await (await start(folder, size)).stop()
  const secret = loadMasterSecret(undefined, openDataFolder(data, console.error))
  const computeVerifier = createVerifier(deriveSubkey(secret, 'api-key-pepper'))
  const database = await openDatabase({ url: undefined, dataFolder: data })
  const [project] = await database.sql<{ id: ProjectId }>`SELECT id FROM projects`
  if (!project) throw new Error('the first start made no project')
  const keys = Array.from({ length: size.keys }, createApiKey)
  for (let from = 0; from < keys.length; from += keysPerTransaction) {
    await database.transaction(async (sql) => {
      for (const key of keys.slice(from, from + keysPerTransaction)) {
        const wish = { projectId: project.id, name: 'bench', key, createdAt: systemClock.now() }
        await insertKey(sql, wish, computeVerifier)
      }
    })
  }
  await database.close()
  return { launched: await start(folder, size), keys, models: size.models }
}

/** CPU microseconds of the gateway per request, over so many of its keys and models in turn. */
async function measure({ launched, keys, models }: Running, inUse: Pick<Size, 'keys' | 'models'>): Promise<number> {
  const url = `http://127.0.0.1:${launched.port}/v1/chat/completions`
  const call = async (at: number): Promise<void> => {
    // Steps that share no factor with the sizes, so that neighbours are not asked for one after the other.
    const key = keys[(at * 7919) % Math.min(inUse.keys, keys.length)]
    const model = `bench/model-${(at * 104_729) % Math.min(inUse.models, models)}`
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello from the other side' }] }),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  }
  const run = async (count: number): Promise<void> => {
    let next = 0
    const client = async () => {
      while (next < count) await call(next++)
    }
    await Promise.all(Array.from({ length: connections }, client))
  }
  await run(requestsPerRound / 8)
  const before = costOf(launched.pid).cpuMicros
  await run(requestsPerRound)
  return (costOf(launched.pid).cpuMicros - before) / requestsPerRound
}

async function compare(few: Running, many: Running): Promise<void> {
  const usual: number[] = []
  const cases = [
    { name: '10 of each in use', inUse: small, figures: [] as number[] },
    { name: '10 keys and all models in use', inUse: { ...small, models: large.models }, figures: [] as number[] },
    { name: 'all in use in turn', inUse: large, figures: [] as number[] },
  ]
  for (let round = 0; round < rounds; round++) {
    usual.push(await measure(few, small))
    for (const { inUse, figures } of cases) figures.push(await measure(many, inUse))
  }
  // Within each round, so that a slow moment of the machine weighs on both sides.
  const ratio = (figures: readonly number[]) => median(figures.map((cpu, round) => cpu / (usual[round] ?? Number.NaN)))
  const line = (name: string, figures: readonly number[]) =>
    console.log(`${name.padEnd(60)} ${median(figures).toFixed(1).padStart(6)} µs ${ratio(figures).toFixed(3)} ×`)
  line('10 keys, 10 models', usual)
  for (const { name, figures } of cases) line(`100,000 keys, 5,000 models, ${name}`, figures)
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-and-models-'))
const running: Running[] = []
try {
  for (const size of [small, large]) running.push(await prepare(folder, size))
  const [few, many] = running
  if (few && many) await compare(few, many)
} finally {
  for (const { launched } of running) await launched.stop()
  rmSync(folder, { recursive: true, force: true })
}
