// `npm run replicas`: whole gateways on PostgreSQL and Redis, killed, restarted
// and cut off from both, and what they must keep meanwhile. Ends with the figures, and with 0 if nothing was broken.

import { findPostgresPrograms } from '../parts/postgres.ts'
import { findRedisProgram } from '../parts/redis.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { runChanges } from './fleet/changes.ts'
import { findNginx } from './fleet/nginx.ts'
import { runPostgresRestart } from './fleet/postgres-restart.ts'
import type { Progress, Proof } from './fleet/proof.ts'
import { runRedisLoss } from './fleet/redis-loss.ts'
import { runRemovals } from './fleet/removed-person.ts'
import { runRolling } from './fleet/rolling.ts'
import { runSameLimit } from './fleet/same-limit.ts'
import { runStorm } from './fleet/storm.ts'

type Part = readonly [title: string, run: (onProgress: Progress) => Promise<Proof>]

function partsOf(requests: number): Record<string, readonly Part[]> {
  const storm = {
    requests,
    killsLeast: 5,
    killEveryMs: 3000,
    thinNanos: 500_000_000n,
    agesTheDead: false,
    // M5.
    resolvedWithinMs: 60_000,
  }
  const loss = { limit: 300, losses: 3, askedEach: 2000 }
  // The last gap is longer than it takes to be thought dead.
  const restart = { gapsMs: [2000, 25_000], completeEach: 300 }
  const roll = { rounds: 2, streams: 40 }
  const behindNginx: Part = [
    'rolling restart behind nginx',
    (onProgress) => runRolling({ ...roll, front: 'nginx', onProgress }),
  ]
  return {
    storm: [['three replicas, one killed every three seconds', (onProgress) => runStorm({ ...storm, onProgress })]],
    limits: [
      ['one limit for all, with Redis', () => runSameLimit({ redis: true, asking: 150 })],
      ['one limit for all, PostgreSQL alone', () => runSameLimit({ redis: false, asking: 150 })],
      ['Redis lost under load', (onProgress) => runRedisLoss({ ...loss, onProgress })],
    ],
    postgres: [['PostgreSQL restarted', (onProgress) => runPostgresRestart({ ...restart, onProgress })]],
    changes: [
      ['changes, with Redis', () => runChanges({ redis: true, rounds: 10, withinMs: 1000 })],
      ['changes, PostgreSQL alone', () => runChanges({ redis: false, rounds: 5, withinMs: 5000 })],
    ],
    people: [
      ['removed people, with Redis', () => runRemovals({ redis: true, rounds: 20, withinMs: 1000 })],
      ['removed people, PostgreSQL alone', () => runRemovals({ redis: false, rounds: 20, withinMs: 1000 })],
    ],
    upgrade: [
      [
        'rolling upgrade of two replicas',
        (onProgress) =>
          runRolling({ rounds: 1, streams: 40, requests: 5000, front: { probeMs: 500 }, upgrade: true, onProgress }),
      ],
    ],
    rolling: [
      ['rolling restart', (onProgress) => runRolling({ ...roll, front: { probeMs: 500 }, onProgress })],
      ...(findNginx() === undefined ? [] : [behindNginx]),
    ],
  }
}

const usage = `npm run replicas -- [options]
  --requests N   requests of the storm (10000)
  --only a,b     parts: ${Object.keys(partsOf(1)).join(', ')}`

function readOptions(): { readonly parts: readonly Part[] } {
  const values = scriptOptions(usage, { requests: { type: 'string', default: '10000' }, only: { type: 'string' } })
  const requests = Number(values.requests)
  if (!Number.isInteger(requests) || requests < 1) return refuseOptions('--requests takes a whole number from 1', usage)
  const known = partsOf(requests)
  const names = values.only?.split(',') ?? Object.keys(known)
  const unknown = names.find((name) => known[name] === undefined)
  if (unknown !== undefined) return refuseOptions(`there is no part ${unknown}`, usage)
  return { parts: names.flatMap((name) => known[name] ?? []) }
}

function summaryOf(title: string, { figures, faults }: Proof): string {
  const lines = Object.entries(figures).map(([name, value]) => `  ${name.padEnd(52)} ${value}`)
  const verdict =
    faults.length === 0 ? 'ok' : `${faults.length} BROKEN\n${faults.map((fault) => `    ${fault}`).join('\n')}`
  return [`${title}: ${verdict}`, ...lines].join('\n')
}

// So that the gateways that run just now go too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const options = readOptions()
if (findPostgresPrograms() === undefined || findRedisProgram() === undefined) {
  console.error('This needs PostgreSQL, and Redis or Valkey; install both')
  process.exit(2)
}
const summaries: string[] = []
let isSound = true
for (const [title, run] of options.parts) {
  console.log(title)
  const proof = await run((line) => console.log(`  ${line}`))
  isSound = isSound && proof.faults.length === 0
  summaries.push(summaryOf(title, proof))
  console.log(summaryOf(title, proof))
}
console.log(`\n${'='.repeat(72)}\n${summaries.join('\n\n')}`)
// The private PostgreSQL server would keep this process waiting.
process.exit(isSound ? 0 : 1)
