// One soak from start to end: a gateway, a provider that goes wrong at times and clients that leave, each a process of
// its own; samples while they run, and once more when it is quiet again. What the figures mean is judged elsewhere.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { type SoakChild, startSoakChild } from './child.ts'
import type { ProviderCounts, TrafficCounts, TrafficPlan } from './counts.ts'
import { isBack, type SoakRun } from './judge.ts'
import { type Sample, type SampleSource, takeSample } from './sample.ts'
import { addTenants, createManager, soakConfig, type Tenants } from './tenants.ts'

export interface SoakOptions {
  readonly minutes: number
  readonly callsPerSecond: number
  readonly warmUpSeconds: number
  /** Without the compiler, so that what it keeps of hot code is not taken for a leak. */
  readonly isInterpreted?: boolean
  readonly sampleSeconds: number
  /** How often the traffic pauses for a look at what is kept when nothing runs; absent = never. */
  readonly restEverySeconds?: number
  /** How long what is left after the traffic may take to go. */
  readonly quietSecondsMax: number
  /** Goes on for longer than the minutes until this holds; absent = it does not. */
  readonly isEnough?: (traffic: TrafficCounts, provider: ProviderCounts) => boolean
  onSample?(sample: Sample, traffic: TrafficCounts, provider: ProviderCounts): void
}

const leaveShare = 0.2
const faultShare = 0.055
const launcher = join(import.meta.dir, '..', '..', 'bin', 'tollgate')
/** After this a call that has no end will have none: a route's `total_ms`, four routes, and some. */
const lastCallSeconds = 150
/** A call on a route that hangs is given up before; then pools, timers and the allocator get a moment to give back. */
const restSecondsMax = 40
const settleMs = 5000

export async function runSoak(options: SoakOptions): Promise<SoakRun> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-soak-'))
  await using provider = await startSoakChild<ProviderCounts>('provider-child.ts', [`--fault-share=${faultShare}`])
  const dataFolder = join(folder, 'data')
  const configPath = join(folder, 'tollgate.yaml')
  const probePath = join(folder, 'probe')
  mkdirSync(dataFolder, { mode: 0o700 })
  writeFileSync(configPath, soakConfig(await provider.firstLine))
  const gateway = await startCrashGateway(
    { dataFolder, databaseUrl: undefined, configPath },
    {
      command: [launcher],
      preload: [join(import.meta.dir, 'probe.ts')],
      env: { SOAK_PROBE: probePath, ...(options.isInterpreted && { BUN_JSC_useJIT: '0' }) },
    },
  )
  try {
    const manager = createManager(gateway.url, dataFolder)
    const tenants = await addTenants(manager, options.callsPerSecond)
    const figures = await soak(options, {
      gateway,
      provider,
      tenants,
      source: { pid: gateway.pid, manager, probePath },
    })
    const books = await verifyBooks(dataFolder, configPath)
    return { ...figures, books, isAlive: gateway.isAlive(), errorLines: gateway.errors().slice(0, 20) }
  } finally {
    await gateway.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Scene {
  readonly gateway: CrashGateway
  readonly provider: SoakChild<ProviderCounts>
  readonly tenants: Tenants
  readonly source: SampleSource
}

async function soak(
  options: SoakOptions,
  { gateway, provider, tenants, source }: Scene,
): Promise<Omit<SoakRun, 'books' | 'isAlive' | 'errorLines'>> {
  const { minutes, callsPerSecond, warmUpSeconds, onSample = () => {} } = options
  // Resources that the first request opens permanently, such as readers of the database, are no leak.
  await callSandbox(gateway)
  const baseline = await takeSample(source, 0, 'collect')
  const plan: TrafficPlan = { url: gateway.url, callsPerSecond, leaveShare, keys: tenants.keys }
  await using traffic = await startSoakChild<TrafficCounts>('traffic-child.ts', [JSON.stringify(plan)])
  const startedMs = performance.now()
  const second = () => (performance.now() - startedMs) / 1000
  const samples: Sample[] = []
  const rests: Sample[] = []
  const { restEverySeconds = Number.POSITIVE_INFINITY } = options
  let nextRest = restEverySeconds
  const isEnough = () => {
    const [asked, answered] = [traffic.last(), provider.last()]
    return options.isEnough === undefined || (asked && answered && options.isEnough(asked, answered))
  }
  while ((second() < minutes * 60 || !isEnough()) && gateway.isAlive()) {
    await Bun.sleep(options.sampleSeconds * 1000)
    // At any pace of samples its wallet is empty for some of the time.
    if (samples.length % 5 === 0) await tenants.feedThePoor()
    const sample = await takeSample(source, second(), 'read')
    samples.push(sample)
    const [asked, answered] = [traffic.last(), provider.last()]
    if (asked && answered) onSample(sample, asked, answered)
    if (second() < nextRest) continue
    nextRest += restEverySeconds
    if (await isAtRest(traffic)) rests.push(await takeSample(source, second(), 'collect'))
    traffic.say('resume')
  }
  traffic.say('stop')
  await Promise.race([traffic.exited, Bun.sleep(lastCallSeconds * 1000)])
  const counts = { traffic: traffic.last(), provider: provider.last() }
  if (!counts.traffic || !counts.provider) throw new Error('a child ended without a count')
  // Their connections go with them, and are the gateway's to close.
  await traffic.end()
  await provider.end()
  const quietStartedMs = performance.now()
  const quietSecond = () => (performance.now() - quietStartedMs) / 1000
  let quiet = await takeSample(source, second(), 'collect')
  while (!isBack(baseline, quiet) && quietSecond() < options.quietSecondsMax) {
    await Bun.sleep(1000)
    quiet = await takeSample(source, second(), 'collect')
  }
  return {
    minutes,
    callsPerSecond,
    warmUpSeconds,
    baseline,
    samples,
    rests,
    quiet,
    quietSeconds: quietSecond(),
    traffic: counts.traffic,
    provider: counts.provider,
  }
}

/** Pauses the traffic; false = something still runs after all this time, and memory would show that instead. */
async function isAtRest(traffic: SoakChild<TrafficCounts>): Promise<boolean> {
  traffic.say('pause')
  const untilMs = performance.now() + restSecondsMax * 1000
  // Its count is a second old.
  do await Bun.sleep(2000)
  while (traffic.last()?.running !== 0 && performance.now() < untilMs)
  await Bun.sleep(settleMs)
  return traffic.last()?.running === 0
}

async function callSandbox({ url, key }: CrashGateway): Promise<void> {
  for (const stream of [true, false]) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model: 'sandbox/echo', stream, messages: [{ role: 'user', content: 'hello' }] }),
    })
    await response.text()
    if (response.status !== 200) throw new Error(`the sandbox answered with ${response.status}`)
  }
}

async function verifyBooks(dataFolder: string, configPath: string): Promise<SoakRun['books']> {
  const child = Bun.spawn([launcher, 'ledger', 'verify'], {
    env: { PATH: process.env.PATH ?? '', HOME: dataFolder, TOLLGATE_DATA: dataFolder, TOLLGATE_CONFIG: configPath },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { exit, text: (out + err).trim() }
}
