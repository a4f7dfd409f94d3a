// Alerts from the cause to the receiver: raised once, signed, retried.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { Webhook } from 'standardwebhooks'
import { detectAlerts, raiseAlert } from '../../src/alerts/alerts.ts'
import { createMailer } from '../../src/alerts/mail.ts'
import { putKinds } from '../../src/alerts/readers.ts'
import { sendDue } from '../../src/alerts/webhooks.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createId, type PersonId, type WorkspaceId } from '../../src/kernel/ids.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createEgressGuard } from '../../src/providers/egress/egress-guard.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { forEachEngine } from '../parts/engines.ts'
import { adminToken } from '../parts/manage.ts'
import { eventOf, signedEvent } from '../parts/stripe.ts'
import { chat } from '../parts/surfaces.ts'
import { startTenancy, type Tenancy, until } from '../tenancy/tenancy.ts'

interface Received {
  readonly headers: Record<string, string>
  readonly body: string
}

/** A receiver that answers with `answer`, and at `/silent` never. */
function startReceiver() {
  const received: Received[] = []
  let status = 204
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() })
      if (new URL(request.url).pathname === '/silent') return await new Promise<Response>(() => {})
      return new Response(null, { status, headers: status === 302 ? { location: '/elsewhere' } : {} })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    answer(next: number) {
      status = next
    },
    stop: () => server.stop(true),
  }
}

interface Mailed {
  readonly to: string
  readonly text: string
}

/** A real mail server. It refuses `gone@` permanently, and `later@` until the test changes that. */
async function startMailServer() {
  const mails: Mailed[] = []
  let isFull = true
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo({ address }, _session, done) {
      const code = address.startsWith('gone@') ? 550 : address.startsWith('later@') && isFull ? 452 : undefined
      done(code === undefined ? null : Object.assign(new Error('no'), { responseCode: code }))
    },
    onData(stream, { envelope }, done) {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      stream.on('end', () => {
        const raw = Buffer.concat(pieces).toString()
        const text = raw
          .replaceAll('=\r\n', '')
          .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number(`0x${hex}`)))
        mails.push({ to: envelope.rcptTo.map(({ address }) => address).join(), text })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  return {
    mails,
    url: `smtp://127.0.0.1:${port}`,
    to: (address: string) => mails.filter(({ to }) => to === address),
    takeAll() {
      isFull = false
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

const stripeSecret = 'whsec_of_the_test_endpoint'
const stripeEnv = { STRIPE_SECRET_KEY: 'sk_test_0123456789', STRIPE_WEBHOOK_SECRET: stripeSecret }
const config = `
webhooks: { allow_hosts: ["127.0.0.1"] }
`

forEachEngine((engine) => {
  let tenancy: Tenancy
  let receiver: ReturnType<typeof startReceiver>
  let database: Database
  let mailServer: Awaited<ReturnType<typeof startMailServer>>
  beforeAll(async () => {
    receiver = startReceiver()
    mailServer = await startMailServer()
    const env = { TOLLGATE_SMTP_URL: mailServer.url, TOLLGATE_MAIL_FROM: 'Gate <gate@example.com>', ...stripeEnv }
    tenancy = await startTenancy({ engine, config, env: { ...env, TOLLGATE_PUBLIC_URL: 'https://gate.example.com' } })
    database = await openDatabase({ url: tenancy.databaseUrl, dataFolder: tenancy.gateway.dataFolder })
  })
  afterAll(async () => {
    await database.close()
    await tenancy[Symbol.asyncDispose]()
    receiver.stop()
    await mailServer.stop()
  })

  const secrets = new Map<string, string>()
  const createHook = async (body: object = {}) => {
    const hook = await tenancy.must('POST', '/api/webhooks', { url: receiver.url, ...body })
    secrets.set(hook.id, hook.secret)
    return hook
  }
  /** Sends at once what is due, as another replica does whose clock is ahead; the gateway itself does it every 2 s. */
  const send = async (aheadMs = 0) => {
    const mailer = createMailer({ url: new Secret(mailServer.url), from: 'Gate <gate@example.com>' })
    await sendDue({
      database,
      clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
      guard: () => createEgressGuard({ allow: ['127.0.0.1'] }),
      secretsOf: (id) => [secrets.get(id) ?? ''],
      mailer,
      address: () => 'https://gate.example.com',
    })
  }

  /** A person with a role; no workspace = an operator. */
  const person = async (email: string, role: string, workspaceId: string | null): Promise<PersonId> => {
    const id = createId('per')
    const member = { id: createId('mem'), person_id: id, workspace_id: workspaceId, role, source: 'invitation' }
    await database.transaction(async (sql) => {
      await sql`INSERT INTO people ${sql([{ id, email, name: 'P', created_at: 0n }])}`
      await sql`INSERT INTO members ${sql([{ ...member, created_at: 0n }])}`
    })
    return id
  }
  /** Changes the workspace's rule; 0 = no alert. */
  const lowBalance = async (workspaceId: string, below: string) => {
    const { data } = await tenancy.must('GET', `/api/alert-rules?workspace_id=${workspaceId}`)
    const { id } = data.find(({ kind }: { kind: string }) => kind === 'balance.low')
    if (below === '0') expect((await tenancy.api('DELETE', `/api/alert-rules/${id}`)).status).toBe(204)
    else await tenancy.must('PATCH', `/api/alert-rules/${id}`, { below })
  }
  const mailDeliveries = async (workspaceId: string) =>
    (await tenancy.must('GET', `/api/deliveries?workspace_id=${workspaceId}`)).data

  test('without a mail server an alert creates no e-mails', async () => {
    const { workspaceId } = await tenancy.tenant()
    await person('nomail@example.com', 'admin', workspaceId)
    const about = {
      kind: 'topup.failed',
      workspaceId: workspaceId as WorkspaceId,
      message: 'Declined.',
      data: {},
    } as const
    const alert = { ...about, crossing: `topup:${workspaceId}` }
    await database.transaction((sql) => raiseAlert(sql, alert, { now: systemClock.now(), mail: undefined }))
    expect((await tenancy.must('GET', `/api/alerts?workspace_id=${workspaceId}`)).data).toMatchObject([
      { kind: 'topup.failed' },
    ])
    expect(await mailDeliveries(workspaceId)).toEqual([])
  })

  test('people get alerts by e-mail, by their role or as they chose, each once', async () => {
    const { workspaceId } = await tenancy.tenant({ credit: '1.00' })
    await person('ada@example.com', 'admin', workspaceId)
    await person('vera@example.com', 'viewer', workspaceId)
    await person('max@example.com', 'member', workspaceId)
    await person('root@example.com', 'operator', null)
    await person('gone@example.com', 'admin', workspaceId)
    await person('later@example.com', 'admin', workspaceId)
    const quiet = await person('quiet@example.com', 'admin', workspaceId)
    const keen = await person('keen@example.com', 'viewer', workspaceId)
    await database.transaction(async (sql) => {
      await putKinds(sql, quiet, ['limit.reached'])
      await putKinds(sql, keen, ['balance.low'])
    })
    await lowBalance(workspaceId, '5.00')
    await tenancy.must('PATCH', `/api/workspaces/${workspaceId}`, { name: 'Ada & Co' })
    const now = systemClock.now()
    await Promise.all([1, 2, 3].map(() => detectAlerts(database, { now, mail: { domains: [] } })))
    await send()
    await until(async () =>
      (await mailDeliveries(workspaceId)).every(({ attempts }: { attempts: number }) => attempts > 0),
    )
    await until(() => mailServer.to('ada@example.com').length > 0 && mailServer.to('keen@example.com').length > 0)
    const [mail] = mailServer.to('ada@example.com')
    expect(mail?.text).toContain('Subject: Low balance: Ada & Co')
    expect(mail?.text).toContain('From: Gate <gate@example.com>')
    expect(mail?.text).toContain('The balance of workspace "Ada & Co" is $1.00, below $5.00.')
    expect(mail?.text).toContain('workspace &quot;Ada &amp; Co&quot;')
    expect(mail?.text).toContain('https://gate.example.com/console/alerts')
    type Row = { receiver: string; delivered_at: string | null; next_at: string | null; error: string | null }
    const rowOf = async (receiver: string): Promise<Row> =>
      (await mailDeliveries(workspaceId)).find((row: Row) => row.receiver === receiver)
    await until(async () => (await rowOf('later@example.com')).error !== null)
    await until(async () => (await rowOf('gone@example.com')).error !== null)
    expect(await rowOf('gone@example.com')).toMatchObject({ next_at: null, error: 'the mail server answered 550' })
    const later = await rowOf('later@example.com')
    expect([later.error, later.delivered_at, later.next_at !== null]).toEqual([
      'the mail server answered 452',
      null,
      true,
    ])
    mailServer.takeAll()
    await send(6000)
    await until(async () => (await rowOf('later@example.com')).delivered_at !== null)
    expect(mailServer.mails.map(({ to }) => to).sort()).toEqual([
      'ada@example.com',
      'keen@example.com',
      'later@example.com',
    ])
    // Another person's removal must not fail on what was sent to them.
    const { data: members } = await tenancy.must('GET', `/api/members?workspace_id=${workspaceId}`)
    const gone = members.find(({ email }: { email: string }) => email === 'gone@example.com')
    expect((await tenancy.api('DELETE', `/api/members/${gone.id}`)).status).toBe(204)
    expect(await rowOf('gone@example.com')).toBeUndefined()
  })

  test('alerts are unread until the reader marks them', async () => {
    const { data } = await tenancy.must('GET', '/api/alerts')
    expect(data.map(({ is_unread }: { is_unread: boolean }) => is_unread)).toEqual(data.map(() => true))
    expect((await tenancy.api('POST', '/api/alerts/read', { until: data[0].id })).status).toBe(204)
    const again = await tenancy.must('GET', '/api/alerts')
    expect(again.data[0]).toMatchObject({ id: data[0].id, is_unread: false })
    expect((await tenancy.api('POST', '/api/alerts/read', { until: 'x' })).status).toBe(400)
  })

  test('an invitation and a password link are mailed, and shown as well', async () => {
    const invitation = await tenancy.must('POST', '/api/invitations', { email: 'new@example.com', role: 'operator' })
    expect(invitation).toMatchObject({ is_mailed: true })
    await until(() => mailServer.to('new@example.com').length > 0)
    expect(mailServer.to('new@example.com')[0]?.text).toContain(invitation.url)
    const { data: members } = await tenancy.must('GET', '/api/members')
    const root = members.find(({ email }: { email: string }) => email === 'root@example.com')
    const link = await tenancy.must('POST', `/api/members/${root.id}/reset-link`)
    await until(() => mailServer.to('root@example.com').length > 0)
    expect(mailServer.to('root@example.com')[0]?.text).toContain(link.url)
  })

  test('an invitation that the mail server refuses says so, also to a retry under its key', async () => {
    const invite = async (email: string) => {
      const headers = {
        authorization: `Bearer ${adminToken(tenancy.gateway.dataFolder)}`,
        'idempotency-key': email,
      }
      return (await tenancy.api('POST', '/api/invitations', { email, role: 'operator' }, headers)).body
    }
    for (const [email, isMailed] of [
      ['gone@example.com', false],
      ['taken@example.com', true],
    ] as const) {
      const first = await invite(email)
      expect([email, first.is_mailed]).toEqual([email, isMailed])
      expect(await invite(email)).toEqual(first)
      expect(mailServer.to(email)).toHaveLength(isMailed ? 1 : 0)
    }
  })

  const deliveriesOf = async (id: string) => (await tenancy.must('GET', `/api/webhooks/${id}/deliveries`)).data

  test('a test arrives with a signature that the public library accepts, and is in the delivery log', async () => {
    const hook = await createHook()
    expect(hook).toMatchObject({ url: receiver.url, workspace_id: null, kinds: null })
    const { delivery_id: id } = await tenancy.must('POST', `/api/webhooks/${hook.id}/test`)
    await send()
    await until(() => receiver.received.length > 0)
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.received
    expect(new Webhook(hook.secret).verify(body, headers)).toMatchObject({
      type: 'test',
      data: { message: 'This is a test of the webhook.', workspace_id: null },
    })
    expect(() => new Webhook(hook.secret).verify(body.replace('test', 'tost'), headers)).toThrow()
    expect(headers['webhook-id']).toBe(id)
    await until(async () => (await deliveriesOf(hook.id))[0]?.delivered_at !== null)
    expect(await deliveriesOf(hook.id)).toMatchObject([{ id, kind: 'test', attempts: 1, next_at: null, error: null }])
    await tenancy.must('POST', `/api/deliveries/${id}/replay`)
    await send()
    await until(() => receiver.received.length > 1)
    expect(receiver.received[1]?.headers['webhook-id']).not.toBe(id)
    expect((await tenancy.api('DELETE', `/api/webhooks/${hook.id}`)).status).toBe(204)
    expect((await tenancy.api('GET', `/api/webhooks/${hook.id}/deliveries`)).status).toBe(404)
  })

  test('a low balance and a spend limit are raised once per crossing, for their workspace only', async () => {
    const tenant = await tenancy.tenant({ credit: '1.00' })
    const other = await tenancy.tenant({ credit: '1.00' })
    await lowBalance(tenant.workspaceId, '1.00')
    await lowBalance(other.workspaceId, '0')
    const alerts = async (id: string) => (await tenancy.must('GET', `/api/alerts?workspace_id=${id}`)).data
    const costs: (string | null)[] = []
    for (const { key } of [tenant, other]) {
      const reply = await tenancy.generate(chat, key, 'sandbox/echo', { max_tokens: 8 })
      expect(reply.status).toBe(200)
      costs.push(reply.headers.get('x-tollgate-cost'))
    }
    const [cost] = costs
    await tenancy.must('PUT', `/api/keys/${tenant.keyId}/limits`, { spend_per_day: cost })
    const now = systemClock.now()
    // As several replicas do.
    const detect = () => Promise.all([1, 2, 3].map(() => detectAlerts(database, { now, mail: { domains: [] } })))
    // Spend from before the limit was set is counted in the background.
    await until(async () => {
      await detect()
      return (await alerts(tenant.workspaceId)).length >= 2
    })
    await detect()
    const raised = await alerts(tenant.workspaceId)
    expect(raised.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['balance.low', 'limit.reached'])
    const [limit] = raised.filter(({ kind }: { kind: string }) => kind === 'limit.reached')
    expect(limit.data).toMatchObject({ scope: 'key', period: 'day', limit: cost, spent: cost, percent: 100 })
    expect(await alerts(other.workspaceId)).toEqual([])
    // A top-up ends the crossing; the next one is another.
    await tenancy.must('POST', `/api/workspaces/${tenant.workspaceId}/topups`, { amount: '0.000000001' })
    await detect()
    expect((await alerts(tenant.workspaceId)).length).toBe(3)
  })

  test('an automatic top-up that fails reaches the webhook and the admins by e-mail, once for two events', async () => {
    const { workspaceId } = await tenancy.tenant({ credit: '1.00' })
    await person('payer@example.com', 'admin', workspaceId)
    await lowBalance(workspaceId, '0')
    const hook = await createHook({ workspace_id: workspaceId, kinds: ['topup.failed'] })
    const id = createId('pay')
    await database.transaction(async (sql) => {
      const terms = { is_on: 1n, threshold: 0n, amount: 10_000_000_000n, month_max: 10_000_000_000n }
      const card = { customer: 'cus_1', payment_method: 'pm_1', card: 'visa 4242' }
      await sql`INSERT INTO auto_topups ${sql([{ workspace_id: workspaceId, ...terms, ...card }])}`
      const facts = { id, workspace_id: workspaceId, kind: 'automatic', state: 'open', created_at: 0n }
      await sql`INSERT INTO payments ${sql([{ ...facts, amount: 10_000_000_000n }])}`
    })
    const intent = {
      ...{ id: 'pi_1', object: 'payment_intent', amount: 1000, amount_received: 0, currency: 'usd', customer: 'cus_1' },
      ...{
        status: 'requires_payment_method',
        last_payment_error: { code: 'card_declined', decline_code: 'lost_card' },
      },
      metadata: { tollgate_workspace_id: workspaceId, tollgate_payment_id: id, tollgate_automatic: 'yes' },
    }
    const url = `${tenancy.gateway.url}/api/payments/stripe/webhook`
    for (const _ of [1, 2]) {
      const event = eventOf('payment_intent.payment_failed', intent)
      expect((await fetch(signedEvent({ url, secret: stripeSecret, nowMs: Date.now() }, event))).status).toBe(200)
    }
    await send()
    await until(async () => (await deliveriesOf(hook.id)).some((row: { delivered_at: unknown }) => row.delivered_at))
    await until(() => mailServer.to('payer@example.com').length > 0)
    const sent = receiver.received.filter(({ body }) => body.includes('topup.failed'))
    expect(sent).toHaveLength(1)
    expect(new Webhook(hook.secret).verify(sent[0]?.body ?? '', sent[0]?.headers ?? {})).toMatchObject({
      type: 'topup.failed',
      data: { workspace_id: workspaceId, why: 'the payment was declined (lost_card)', amount: '10.00', is_off: false },
    })
    const mails = mailServer.to('payer@example.com')
    expect(mails).toHaveLength(1)
    expect(mails[0]?.text).toContain('Subject: Automatic top-up failed: a tenant')
    expect(mails[0]?.text).toContain('The automatic top-up of $10.00 failed in workspace "a tenant"')
  })

  test.each([
    ['fails', 500, 'the receiver answered 500', true],
    ['redirects', 302, 'the receiver answered 302', true],
    ['is gone', 410, 'the receiver answered 410', false],
  ])('a receiver that %s gets it again later, or never if it says so', async (_, status, error, isRetried) => {
    const hook = await createHook()
    receiver.answer(status)
    const before = receiver.received.length
    await tenancy.must('POST', `/api/webhooks/${hook.id}/test`)
    await send()
    await until(async () => (await deliveriesOf(hook.id))[0]?.error !== null)
    const [delivery] = await deliveriesOf(hook.id)
    expect([delivery.error, delivery.delivered_at, delivery.next_at !== null]).toEqual([error, null, isRetried])
    receiver.answer(204)
    await send(6000)
    await until(async () => !isRetried || (await deliveriesOf(hook.id))[0]?.delivered_at !== null)
    const ids = receiver.received.slice(before).map(({ headers }) => headers['webhook-id'])
    const times = ids.filter((id) => id === delivery.id).length
    expect(isRetried ? times >= 2 : times === 1).toBe(true)
    await tenancy.api('DELETE', `/api/webhooks/${hook.id}`)
  })

  test('a receiver that fails for a day is given up, and gets it when it is sent again', async () => {
    const hook = await createHook()
    receiver.answer(500)
    await tenancy.must('POST', `/api/webhooks/${hook.id}/test`)
    const startedAt = systemClock.now()
    let triedAt = startedAt
    for (;;) {
      await send(triedAt - systemClock.now())
      await until(async () => (await deliveriesOf(hook.id))[0]?.error !== null)
      const [{ next_at }] = await deliveriesOf(hook.id)
      if (next_at === null) break
      triedAt = Date.parse(next_at)
    }
    const hours = (triedAt - startedAt) / 3_600_000
    expect(hours).toBeGreaterThan(20)
    expect(hours).toBeLessThan(28)
    const [delivery] = await deliveriesOf(hook.id)
    expect(delivery).toMatchObject({ delivered_at: null, error: 'the receiver answered 500' })
    receiver.answer(204)
    await tenancy.must('POST', `/api/deliveries/${delivery.id}/replay`)
    await send()
    await until(async () => (await deliveriesOf(hook.id))[0]?.delivered_at !== null)
    await tenancy.api('DELETE', `/api/webhooks/${hook.id}`)
  })

  // Once: it waits for the ten seconds that a receiver has.
  if (engine.name === 'sqlite') {
    test('a receiver that hangs gets it again later, and others get theirs', async () => {
      const silent = await createHook({ url: receiver.url.replace('/hook', '/silent') })
      const other = await createHook()
      for (const { id } of [silent, other]) await tenancy.must('POST', `/api/webhooks/${id}/test`)
      const sending = send()
      await until(async () => (await deliveriesOf(other.id))[0]?.delivered_at !== null)
      await sending
      while ((await deliveriesOf(silent.id))[0]?.error === null) await Bun.sleep(50)
      const [delivery] = await deliveriesOf(silent.id)
      expect([delivery.error, delivery.delivered_at, delivery.next_at !== null]).toEqual([
        'no answer in 10 s',
        null,
        true,
      ])
      for (const { id } of [silent, other]) await tenancy.api('DELETE', `/api/webhooks/${id}`)
    })
  }

  test.each([
    ['a private address', 'http://10.0.0.1/hook'],
    ['a metadata service', 'http://169.254.169.254/latest'],
    ['no address', 'hook'],
    ['a password', 'https://a:b@example.com/'],
  ])('S9: a webhook to %s is refused', async (_, url) => {
    const reply = await tenancy.api('POST', '/api/webhooks', { url })
    expect([reply.status, reply.body.error.param]).toEqual([400, 'url'])
  })
})
