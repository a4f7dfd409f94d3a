// Whether callers notice policies that are not for their requests: the latency of calls at a steady rate, in short windows by
// turns, on a gateway without policies, on one with policies for other models, and there while one of those hangs. Every
// window has as many calls of other callers beside it, which are not measured. Last, what a policy costs the requests that
// it is for.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { type Launched, launch } from './contenders/launch.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { likelyRange, median } from './statistics.ts'
import { type CallTarget, drive, percentileOf, type Window } from './steady-calls.ts'
import { UPSTREAM_MODEL } from './upstream-replies.ts'

const kinds = ['no policies', 'policies for others', 'one of them hangs', 'judged'] as const
type Kind = (typeof kinds)[number]
/** One window of each kind. */
type Round = ReadonlyMap<Kind, Window>

const usage = `npm run bench:policies -- [options]
  --rate N       calls a second (100)
  --beside N     calls a second of others, whose policy hangs in one kind of window (50)
  --seconds N    of each window (5)
  --rounds N     windows of each kind, in turns (12)`

const [freeModel, judgedModel, hangingModel] = ['bench/free', 'bench/judged', 'bench/hanging']
const warmupSeconds = 3
/** So that as many calls hang as ever will, and none of the window before. */
const settleMs = 1_500
/** One in so many is answered, so that the circuit breaker never ends the waiting. */
const answeredEach = 3
const ratioMax = 1.2

interface Gateways {
  readonly none: CallTarget
  readonly policies: CallTarget
}

interface Plan {
  readonly rate: number
  readonly beside: number
  readonly seconds: number
  readonly rounds: number
}

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    rate: { type: 'string', default: '100' },
    beside: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '12' },
  })
  const [rate, beside] = [Number(values.rate), Number(values.beside)]
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)]
  if (![rate, beside, seconds, rounds].every((each) => Number.isInteger(each) && each > 0)) {
    return refuseOptions('all options take whole numbers above 0', usage)
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-policies-'))
  const upstream = await startUpstream(folder)
  const judge = startJudge()
  const running: Launched[] = []
  try {
    const start = async (name: string, policies: string): Promise<CallTarget> => {
      const { launched, target } = await startGateway(folder, name, configText(upstream.url) + policies)
      running.push(launched)
      return target
    }
    const none = await start('none', '')
    const gateways = { none, policies: await start('policies', policiesText(judge.url)) }
    return print(await measure(gateways, { rate, beside, seconds, rounds }), { rate, beside, seconds, rounds })
  } finally {
    for (const each of running) await each.stop()
    judge.stop()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Allows everything, and hangs where its path says so. */
function startJudge() {
  let asked = 0
  const allow = () => Response.json({ decision: 'allow' })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      new URL(url).pathname === '/hang' && ++asked % answeredEach !== 0 ? new Promise<Response>(() => {}) : allow(),
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) }
}

function configText(upstreamUrl: string): string {
  const price = 'price: { input: "0.001", output: "0.001" }'
  const models = [freeModel, judgedModel, hangingModel].map(
    (id) => `  - { id: ${id}, ${price}, routes: [{ provider: fake, model: ${UPSTREAM_MODEL} }] }\n`,
  )
  return `providers:
  - { id: fake, dialect: openai-chat, base_url: "${upstreamUrl}/v1", api_key: unused }
models:
${models.join('')}`
}

function policiesText(judgeUrl: string): string {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  return `policies:
  - { id: quick, url: "${judgeUrl}/", secret: "${secret}", models: [${judgedModel}] }
  - { id: slow, url: "${judgeUrl}/hang", secret: "${secret}", models: [${hangingModel}] }
`
}

async function startGateway(folder: string, name: string, config: string) {
  const dataFolder = join(folder, name)
  mkdirSync(dataFolder, { mode: 0o700 })
  const configPath = join(folder, `${name}.yaml`)
  writeFileSync(configPath, config)
  const environment = {
    ...{ TOLLGATE_PORT: '0', TOLLGATE_DATA: dataFolder, TOLLGATE_LOG: 'json', TOLLGATE_CONFIG: configPath },
  }
  const command = [join(import.meta.dir, '..', 'bin', 'tollgate')]
  const launched = await launch({ name, folder, command, environment })
  if ('failed' in launched) throw new Error(`the gateway ${launched.failed}`)
  const read = (file: string): string => readFileSync(join(dataFolder, file), 'utf8').trim()
  const url = `http://127.0.0.1:${launched.port}`
  return { launched, target: { url, key: read('first-key'), token: read('admin-token'), pid: launched.pid } }
}

async function measure(
  { none, policies }: Gateways,
  { rate, beside, seconds, rounds }: Plan,
): Promise<readonly Round[]> {
  /** Where, and which models the measured calls and those beside them are for. */
  const targets: Readonly<Record<Kind, readonly [CallTarget, string, string]>> = {
    'no policies': [none, freeModel, judgedModel],
    'policies for others': [policies, freeModel, judgedModel],
    'one of them hangs': [policies, freeModel, hangingModel],
    judged: [policies, judgedModel, judgedModel],
  }
  for (const [target, model] of Object.values(targets)) await drive(target, { model, rate, seconds: warmupSeconds })
  const measured: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    const windows = new Map<Kind, Window>()
    const start = round % kinds.length
    for (const kind of [...kinds.slice(start), ...kinds.slice(0, start)]) {
      const [target, model, other] = targets[kind]
      const end = sendBeside(target, other, beside)
      await Bun.sleep(settleMs)
      windows.set(kind, await drive(target, { model, rate, seconds }))
      await end()
    }
    measured.push(windows)
  }
  return measured
}

/** Where a policy hangs, most of them wait for it for a second, and are then refused. */
function sendBeside({ url, key }: CallTarget, model: string, perSecond: number): () => Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const sent: Promise<number>[] = []
  const send = async (): Promise<number> => {
    // Each has a text of its own: verdicts are remembered by content.
    const messages = [{ role: 'user', content: `call ${sent.length} of ${performance.now()}` }]
    const body = JSON.stringify({ model, max_tokens: 16, messages })
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    await response.text()
    return response.status
  }
  const timer = setInterval(() => sent.push(send()), 1_000 / perSecond)
  return async () => {
    clearInterval(timer)
    const statuses = await Promise.all(sent)
    const hasRefused = statuses.includes(503)
    if (hasRefused !== (model === hangingModel))
      throw new Error(`calls of ${model} were answered ${statuses.join(' ')}`)
  }
}

function print(rounds: readonly Round[], { rate, beside, seconds }: Plan): number {
  const windowsOf = (some: readonly Round[], kind: Kind): Window[] => some.flatMap((round) => round.get(kind) ?? [])
  // Within each round, and the median of them: a disk that stalls once would decide over a percentile of all windows.
  const ratio = (kind: Kind, to: Kind) => (some: readonly Round[]) =>
    median(some.map((round) => percentileOf(windowsOf([round], kind), 99) / percentileOf(windowsOf([round], to), 99)))
  const bases: Readonly<Record<Kind, Kind>> = {
    'no policies': 'no policies',
    'policies for others': 'no policies',
    'one of them hangs': 'policies for others',
    judged: 'policies for others',
  }
  console.log(
    `${rate} calls a second, ${beside} of others beside them, ${rounds.length} windows of ${seconds} s of each kind, in turns\n`,
  )
  console.log(
    '| kind | calls | p50 ms | p99 ms | p99 ×, median of rounds | of | nine of ten times between | CPU of the gateway |',
  )
  console.log('|---|---|---|---|---|---|---|---|')
  for (const kind of kinds) {
    const windows = windowsOf(rounds, kind)
    const to = bases[kind]
    const figures = [
      windows.reduce((sum, { taken }) => sum + taken.length, 0),
      percentileOf(windows, 50).toFixed(2),
      percentileOf(windows, 99).toFixed(2),
      ratio(kind, to)(rounds).toFixed(2),
      to,
      likelyRange(rounds, ratio(kind, to))
        .map((each) => each.toFixed(2))
        .join(' and '),
      `${median(windows.map(({ cpuPercent }) => cpuPercent)).toFixed(1)} %`,
    ]
    console.log(`| ${[kind, ...figures].join(' | ')} |`)
  }
  const all = rounds.flatMap((round) => [...round.values()])
  const failed = all.reduce((sum, window) => sum + window.failed, 0)
  const failure = all.find((window) => window.failed > 0)?.firstFailure
  console.log(`\nCalls that failed: ${failed}${failure === undefined ? '' : ` (${failure})`}`)
  const hangs = ratio('one of them hangs', 'policies for others')(rounds)
  console.log(`While a policy hangs: ${hangs.toFixed(2)} ×, at most ${ratioMax}`)
  return failed === 0 && hangs <= ratioMax ? 0 : 1
}

process.exitCode = await main()
