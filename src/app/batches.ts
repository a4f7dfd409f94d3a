// Builds what stores and runs batches.

import { createLineKeys } from '../batches/line-keys.ts'
import { lineLedger } from '../batches/line-ledger.ts'
import { payerHeader } from '../batches/line-request.ts'
import type { AtProviderDependencies } from '../batches/provider-run.ts'
import { restoreHolds } from '../batches/restore-holds.ts'
import { startBatchRunner } from '../batches/runner.ts'
import { Slots } from '../batches/slots.ts'
import type { BatchRouteDependencies } from '../http/batches/route.ts'
import type { KeyId } from '../kernel/ids.ts'
import { batchApiOf } from '../providers/batch-api/registry.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { createBatchFiles } from '../tenancy/batch-files.ts'
import { createBatchJobStore } from '../tenancy/batch-jobs.ts'
import { createBatchStore } from '../tenancy/batches.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
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
  const { ledger, expectedCost, catalog } = pipeline
  const jobs = createBatchJobStore(database)
  // Only the requests that are made of lines take this path.
  const authenticate = (headers: RequestHeaders) => auth.authenticateKey(headers.get(payerHeader) as KeyId)
  const own = {
    ...{ authenticate, idempotencyKeys: lineKeys.keys, ledger: lineLedger(ledger, lineKeys) },
    resultOf: lineKeys.takeResult,
  }
  const known = new Map<string, ReturnType<Pipeline['inBatches']>>()
  const atProvider: AtProviderDependencies = {
    ...{ jobs, ledger, reach: pipeline.reach, authenticate: auth.authenticateKey },
    at(providerId) {
      const lines = known.get(providerId) ?? pipeline.inBatches(providerId, own)
      known.set(providerId, lines)
      return lines
    },
    placeOf(providerId, dialect) {
      const provider = catalog.current.providers.get(providerId)
      const endpoint = provider?.endpoints.find((each) => each.dialect === dialect && batchApiOf(each))
      return endpoint && { endpoint, apiKey: provider?.apiKey }
    },
    onNotice: (message, facts) => log.warn(message, facts),
  }
  const runner = startBatchRunner({
    ...{ database, clock, store, files, lineKeys },
    slots: new Slots({ clock, max: () => source.current.batches.concurrency, isBusy: deps.isBusy }),
    run: pipeline.runners({ authenticate, idempotencyKeys: lineKeys.keys }),
    atProvider,
    raising: alerts.raising,
    isEnabled: () => source.current.batches.enabled,
    onFault(error) {
      if (!isStoreUnavailable(error)) log.warn('a batch was interrupted; it goes on shortly', errorFields(error))
    },
  })
  const { limiter } = auth
  for (const id of source.current.batches.providers) {
    const provider = catalog.current.providers.get(id)
    if (provider?.endpoints.some((endpoint) => batchApiOf(endpoint))) continue
    const why = provider ? 'the gateway cannot use batches of this provider' : 'this provider has no key, or is off'
    log.warn(`batches.providers names ${id}: ${why}, so lines are called one by one`)
  }
  const route: BatchRouteDependencies = {
    ...{
      authenticate: auth.authenticate,
      limiter,
      store,
      files,
      clock,
      ledger,
      expectedCost,
      runner,
      settings: source,
    },
    forwardedProtoOf: deps.forwardedProtoOf,
    onReadFault: (error) => log.warn('the results of a batch could not be read', errorFields(error)),
  }
  /** What the management API does with them. */
  const managed = { ...store, cancel: runner.cancel }
  return {
    route,
    managed,
    /** Before anything else is held: the embedded engine has lost what it held for batches at their providers. */
    restoreHolds: () => restoreHolds({ clock, store, jobs, ledger, authenticate: auth.authenticateKey }),
    close: runner.close,
  }
}
