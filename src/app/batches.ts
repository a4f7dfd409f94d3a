// Builds what stores and runs batches.

import { createLineKeys } from '../batches/line-keys.ts'
import { payerHeader } from '../batches/line-request.ts'
import { startBatchRunner } from '../batches/runner.ts'
import { Slots } from '../batches/slots.ts'
import type { BatchRouteDependencies } from '../http/batches/route.ts'
import type { KeyId } from '../kernel/ids.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { createBatchFiles } from '../tenancy/batch-files.ts'
import { createBatchStore } from '../tenancy/batches.ts'
import type { Alerts } from './alerts.ts'
import type { Auth } from './auth.ts'
import { type Base, errorFields, type Storage } from './open-storage.ts'
import type { Pipeline } from './pipeline.ts'

interface BatchesDependencies extends Base {
  readonly storage: Storage
  readonly auth: Auth
  readonly pipeline: Pipeline
  readonly alerts: Alerts
  /** Whether the gateway is so busy that other requests would wait for lines of batches. */
  isBusy(): boolean
  forwardedProtoOf: BatchRouteDependencies['forwardedProtoOf']
}

export function createBatches({ storage, auth, pipeline, alerts, source, clock, log, ...deps }: BatchesDependencies) {
  const { database } = storage
  const files = createBatchFiles({ database, clock, keys: auth.keyRing })
  const store = createBatchStore({ database, keys: auth.keyRing })
  const lineKeys = createLineKeys()
  const runner = startBatchRunner({
    ...{ database, clock, store, files, lineKeys },
    slots: new Slots({ clock, max: () => source.current.batches.concurrency, isBusy: deps.isBusy }),
    run: pipeline.runners({
      // Only the requests that are made of lines take this path.
      authenticate: (headers) => auth.authenticateKey(headers.get(payerHeader) as KeyId),
      idempotencyKeys: lineKeys.keys,
    }),
    raising: alerts.raising,
    isEnabled: () => source.current.batches.enabled,
    onFault(error) {
      if (!isStoreUnavailable(error)) log.warn('a batch was interrupted; it goes on shortly', errorFields(error))
    },
  })
  const { limiter, authenticate } = auth
  const { ledger, expectedCost } = pipeline
  const route: BatchRouteDependencies = {
    ...{ authenticate, limiter, store, files, clock, ledger, expectedCost, runner, settings: source },
    forwardedProtoOf: deps.forwardedProtoOf,
    onReadFault: (error) => log.warn('the results of a batch could not be read', errorFields(error)),
  }
  /** What the management API does with them. */
  const managed = { ...store, cancel: runner.cancel }
  return { route, managed, close: runner.close }
}
