// Raises and sends alerts in the background.

import { cleanAlerts, detectAlerts, raiseProviderState, raiseStrayResponse } from '../alerts/alerts.ts'
import { createMailer, type Mail, type Mailer } from '../alerts/mail.ts'
import { createWebhookSecrets, sendDue } from '../alerts/webhooks.ts'
import { type Every, onTimer, withinTime } from '../kernel/timers.ts'
import { strayCounts } from '../providers/connection-pool.ts'
import { createEgressGuard } from '../providers/egress/egress-guard.ts'
import type { Health } from '../routing/health.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import type { LiveCatalog } from './live-catalog.ts'
import { type Base, errorFields, type Storage } from './open-storage.ts'

export type Alerts = ReturnType<typeof createAlerts>

export interface AlertsDependencies extends Base {
  readonly storage: Storage
  readonly health: Pick<Health, 'snapshot'>
  readonly catalog: LiveCatalog
  /** The gateway's address, for links. */
  address(): string
  readonly every?: Every
}

const detectMs = 10_000
const sendMs = 2_000
const cleanMs = 3_600_000
/** A caller of the management API waits for it, and gives up after 30 s. */
const mailWaitMs = 10_000

export function createAlerts(deps: AlertsDependencies) {
  const { storage, source, clock, log, every = onTimer } = deps
  const { database } = storage
  const { current, previous } = storage.subkeys('webhooks')
  const secretsOf = createWebhookSecrets(previous ? [current, previous] : [current])
  const guard = () => createEgressGuard({ allow: source.current.webhooks.allowHosts, setting: 'webhooks.allow_hosts' })
  const mailer = source.current.mail && createMailer(source.current.mail)
  const mailPolicy = () => ({ domains: source.current.alerts.emailDomains })
  const raising = () => ({ now: clock.now(), mail: mailer && mailPolicy() })
  const running = new Set<Promise<void>>()
  const guarded = (what: string, work: () => Promise<unknown>) => () => {
    const run = work()
      .then(() => {})
      // An unreachable database is reported elsewhere, and the next round does what this one could not.
      .catch((error) => isStoreUnavailable(error) || log.warn(what, errorFields(error)))
      .then(() => void running.delete(run))
    running.add(run)
    return run
  }
  const sendOnce = async (from: Mailer, mail: Mail): Promise<boolean> => {
    let isAccepted = false
    const sent = guarded('an e-mail could not be sent', async () => {
      const fault = await from.send(mail)
      isAccepted = fault === undefined
      if (fault) log.warn('an e-mail could not be sent', { subject: mail.subject, error: fault.message })
    })
    await withinTime(mailWaitMs, sent()).catch(() =>
      log.warn('the mail server is slow; an e-mail is still being sent', { subject: mail.subject }),
    )
    return isAccepted
  }
  const providerStates = new Map<string, { readonly isDown: boolean; readonly seenMs: number }>()
  const raised = new Set<string>()
  const straysSeen = new Map(strayCounts)
  const detectStrays = async (): Promise<void> => {
    for (const [host, count] of strayCounts) {
      if (straysSeen.get(host) === count) continue
      log.warn('a host sent a response that no request asked for; its connections are used once each for an hour', {
        host,
        count,
      })
      await raiseStrayResponse(database, host, raising())
      straysSeen.set(host, count)
    }
  }
  const detect = async (): Promise<void> => {
    await detectAlerts(database, raising(), raised)
    for (const { provider, isDown, why, answeredMs } of providersByHealth(deps)) {
      const seen = providerStates.get(provider)
      // Routes are tried again after a while, which says nothing: the provider works once it has answered.
      const isUnknown = !isDown && (answeredMs === undefined || (seen?.isDown && answeredMs < seen.seenMs))
      if (isUnknown || seen?.isDown === isDown) continue
      await raiseProviderState(database, { provider, isDown, why }, raising())
      providerStates.set(provider, { isDown, seenMs: clock.monotonicMs() })
    }
    await detectStrays()
  }
  const stops = [
    every(detectMs, guarded('alerts could not be raised; the next round tries again', detect)),
    every(
      sendMs,
      guarded('alerts could not be sent; the next round tries again', () =>
        sendDue({ database, clock, secretsOf, guard, mailer, address: deps.address }),
      ),
    ),
    every(
      cleanMs,
      guarded('old alerts could not be deleted', () => cleanAlerts(database, raising())),
    ),
  ]
  return {
    webhooks: { guard, secretsOf },
    mailPolicy,
    raising,
    /** Sends once, and tells whether the mail server has accepted it. undefined = no e-mail is configured. */
    sendMail: mailer && ((mail: Mail) => sendOnce(mailer, mail)),
    async close(): Promise<void> {
      for (const stop of stops) stop()
      await Promise.all(running)
    },
  }
}

const downStates: ReadonlySet<string> = new Set(['ejected', 'parked'])

/** A provider is down if every route that was used lately is, on the operator's key. */
function providersByHealth({ health, catalog }: Pick<AlertsDependencies, 'health' | 'catalog'>) {
  const { providers } = catalog.current
  const platform = health.snapshot().filter(({ route }) => route.credentialId === 'platform')
  return [...Map.groupBy(platform, ({ route }) => route.providerId)].flatMap(([provider, readings]) => {
    if (!providers.has(provider) || providers.get(provider)?.ignoresHealth) return []
    const isDown = readings.every(({ state }) => downStates.has(state.state))
    const answers = readings.flatMap(({ route }) => route.answeredMs ?? [])
    const answeredMs = answers.length === 0 ? undefined : Math.max(...answers)
    return [{ provider, isDown, why: isDown ? readings[0]?.state.why : undefined, answeredMs }]
  })
}
