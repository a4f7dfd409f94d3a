import { expect, test } from 'bun:test'
import type { Endpoint } from '../provider.ts'
import { batchApiOf } from './registry.ts'

/** A provider with so many batches that its list does not end. */
function startEndlessList() {
  let count = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      const now = Date.now()
      const data = [{ id: `batch_${++count}`, created_at: Math.floor(now / 1000), request_counts: {} }]
      return Response.json({ data, has_more: true, last_id: `batch_${count}` })
    },
  })
  return { baseUrl: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

test.each(['openai-chat', 'anthropic-messages'] as const)(
  'a job of %s that may be behind the list that was read is not taken for one that was never created',
  async (dialect) => {
    const { baseUrl, stop } = startEndlessList()
    try {
      const endpoint = { dialect, baseUrl } as Endpoint
      const job = { id: 'job_1', createdAt: Date.now() - 60_000, requests: 1, isKnown: async () => false }
      const found = batchApiOf(endpoint)?.find({ endpoint, apiKey: undefined }, job)
      await expect(found).rejects.toMatchObject({ kind: 'passing', message: expect.stringContaining('5000 batches') })
    } finally {
      stop()
    }
  },
)
