// The gateway with a ledger that grants everything and writes nothing: what remains when billing is taken away. Only for
// the question what billing costs.

import { startApp } from '../src/app.ts'
import { loadConfig, readProcess } from '../src/config/config.ts'
import { createConfigSource } from '../src/config/source.ts'
import { systemClock } from '../src/kernel/clock.ts'
import type { Nano } from '../src/kernel/money.ts'
import type { Ledger, Settlement, SettleOutcome } from '../src/ledger/ledger.ts'
import { builtInProviders } from '../src/providers/data/built-in.ts'
import { builtInProviderIds } from '../src/providers/registry.ts'
import { createLog } from '../src/telemetry/log.ts'

function settled({ cost }: Settlement): SettleOutcome {
  return { kind: 'settled', charge: cost, writtenOff: 0n as Nano, repeated: false }
}

const unbilled: Pick<Ledger, 'hold' | 'extend' | 'coverOverrun' | 'markSent' | 'settle' | 'release' | 'admits'> = {
  hold: () => ({ kind: 'held' }),
  extend: () => ({ kind: 'held' }),
  coverOverrun: (_requestId, more) => more,
  markSent() {},
  settle: async (settlement) => settled(settlement),
  release: () => ({ kind: 'released' }),
  admits: () => true,
}

const load = () =>
  loadConfig({
    ...readProcess(),
    providerVariables: builtInProviders.map(({ variable }) => variable),
    builtInProviderIds,
    builtInModels: [],
  })
const initial = load()
if ('faults' in initial) throw new Error(JSON.stringify(initial.faults))
const log = createLog({ format: 'json', clock: systemClock, write: (text) => void process.stdout.write(text) })
const source = createConfigSource({ initial, load, report: () => {} })
const app = await startApp({
  source,
  clock: systemClock,
  log,
  onProgress: () => {},
  wrapLedger: (real) => ({ ...real, ...unbilled }),
})
log.info(`listening on ${app.url}`, { url: app.url })
process.on('SIGTERM', () => void app.stop().then(() => process.exit(0)))
