// Reconciliation through a gateway: configured bills, the management API and the command line.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { chat } from '../parts/surfaces.ts'
import { openPriced, type PricedGateway } from '../prices/priced-gateway.ts'
import { adminKey, type FakeBills, startFakeBills } from './fake-bills.ts'

const wrongKey = 'sk-of-calls-which-may-not-read-reports'

const configOf = (url: string, bills: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - id: acme/large
    price: { input: "1.00", output: "2.00" }
    routes: [{ provider: acme, model: u, cost: { input: "0.90", output: "1.80" } }]
bills:
  - { provider: acme, format: openai, admin_key: ${adminKey}, base_url: "${bills}", keys: [apikey_gateway] }
  - { provider: other, format: anthropic, admin_key: ${wrongKey}, base_url: "${bills}" }
reconcile: { daily: off }
`

forEachEngine((engine) => {
  let bills: FakeBills
  let priced: PricedGateway
  beforeAll(async () => {
    bills = startFakeBills()
    priced = await openPriced({ engine, config: (url) => configOf(url, bills.url) })
  })
  afterAll(async () => {
    await priced[Symbol.asyncDispose]()
    bills[Symbol.dispose]()
  })

  test('a run answers with what was read and what was not, and shows no key', async () => {
    const { tenancy } = priced
    const answer = await tenancy.generate(chat, priced.tenant.key, 'acme/large')
    expect(answer.status).toBe(200)
    const { runs, report } = await tenancy.must('POST', '/api/reconciliations', {})
    // Today is not over, and there were no requests before.
    expect(runs).toMatchObject([
      { provider: 'acme', compared: 0, missing: 0, fault: null },
      { provider: 'other', compared: 0 },
    ])
    expect(report.sources).toMatchObject([
      { provider: 'acme', format: 'openai', fault: null },
      { provider: 'other', format: 'anthropic' },
    ])
    const { data: audit } = await tenancy.must('GET', '/api/audit')
    expect(audit[0]).toMatchObject({ action: 'reconciliation.run', object: 'acme, other' })
    const settings = await tenancy.must('GET', '/api/config')
    expect(settings.data).toContainEqual(
      expect.objectContaining({ name: 'bills.acme', value: 'openai, admin key set' }),
    )
    const text = JSON.stringify([runs, report, settings])
    expect([text.includes(adminKey), text.includes(wrongKey)]).toEqual([false, false])
  })

  test('a provider without a bill, and a period that is not over, are refused', async () => {
    const { tenancy } = priced
    const none = await tenancy.api('POST', '/api/reconciliations', { provider: 'unknown' })
    expect([none.status, none.body.error.message]).toEqual([404, expect.stringContaining('is not configured')])
    const future = await tenancy.api('GET', '/api/reconciliations?from=2999-01-01')
    expect([future.status, future.body.error.message]).toEqual([400, expect.stringContaining('a day that is over')])
  })

  test('the FOCUS files of today add up to what workspaces paid and what it cost', async () => {
    const { tenancy } = priced
    const { total } = await tenancy.must('GET', '/api/margin')
    for (const [content, usd] of [
      ['charges', total.charged],
      ['costs', total.upstream_cost],
    ] as const) {
      const { text } = await tenancy.api('GET', `/api/focus/export?content=${content}`)
      const [header = '', ...lines] = text.trim().split('\n')
      const at = header.split(',').indexOf('BilledCost')
      const sum = lines.reduce((all, line) => all + Math.round(Number(line.split(',')[at]) * 1e9), 0)
      expect([content, sum]).toEqual([content, Math.round(Number(usd) * 1e9)])
    }
  })
})
