// The real app in this process, on data that was laid out by the test: its clock can be pushed, so that half a minute
// of retries passes in an instant.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import { allBuiltInModels } from '../../src/catalog/data/built-in.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createConfigSource } from '../../src/config/source.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { builtInProviderIds, providerVariables } from '../../src/providers/registry.ts'
import { createLog } from '../../src/telemetry/log.ts'
import type { CrashData } from './crash-gateway.ts'

export interface CrashApp {
  readonly url: string
  /** The first key. */
  readonly key: string
  /** Log lines of level error, which a test must not cause. */
  errors(): readonly string[]
  stop(): Promise<void>
}

export async function startCrashApp(data: CrashData, clock: Clock): Promise<CrashApp> {
  const load = () =>
    loadConfig({
      env: {
        TOLLGATE_PORT: '0',
        TOLLGATE_DATA: data.dataFolder,
        TOLLGATE_CONFIG: data.configPath,
        TOLLGATE_LOG: 'json',
        // No balancer has to notice.
        TOLLGATE_DRAIN_DELAY_SECONDS: '0',
        ...(data.databaseUrl !== undefined && { DATABASE_URL: data.databaseUrl }),
      },
      cwd: data.dataFolder,
      stdoutIsTerminal: false,
      providerVariables,
      builtInProviderIds,
      builtInModels: allBuiltInModels,
    })
  const initial = load()
  if ('faults' in initial) throw new Error(`the test's configuration is wrong: ${JSON.stringify(initial.faults)}`)
  let text = ''
  const log = createLog({
    format: 'json',
    clock: systemClock,
    write: (more) => {
      text += more
    },
  })
  const source = createConfigSource({ initial, load, report: (report) => log.info(report.kind) })
  const app = await startApp({ source, clock, log, onProgress: () => {} })
  return {
    url: app.url,
    key: readFileSync(join(data.dataFolder, 'first-key'), 'utf8').trim(),
    errors() {
      log.flush()
      return text.split('\n').filter((line) => line.includes('"level":"error"'))
    },
    stop: async () => void (await app.stop()),
  }
}
