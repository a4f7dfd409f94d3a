import { expect, test } from 'bun:test'
import { breaks, fixture, interfaces } from './interfaces.ts'

test('nothing that others rely on is gone or asks for more since the last release', async () => {
  const before = (await Bun.file(fixture).text()).trim().split('\n')
  expect(before.length).toBeGreaterThan(1000)
  expect(breaks(before, await interfaces())).toEqual([])
})

test('what was removed, renamed or given another type is a break, and what was added is none', () => {
  const before = ['metric tollgate_requests_total counter', 'management POST /api/keys body.name: string']
  expect(breaks(before, [...before, 'management POST /api/keys body.note: string'])).toEqual([])
  expect(
    breaks(before, ['metric tollgate_calls_total counter', 'management POST /api/keys body.name: number']),
  ).toEqual(before.map((line) => `gone: ${line}`))
})

test('a member that a known object suddenly needs is a break, and one of a new object is none', () => {
  const before = ['config.server: object', 'config.server.port: integer']
  const server = 'config.server.host is required'
  expect(breaks(before, [...before, server])).toEqual([`asks for more: ${server}`])
  const policy = ['config.policies[]: object', 'config.policies[].url is required']
  expect(breaks(before, [...before, ...policy])).toEqual([])
  const query = 'management GET /api/keys query workspace is required'
  expect(breaks(['management GET /api/keys'], ['management GET /api/keys', query])).toEqual([`asks for more: ${query}`])
})

test('a member that answers suddenly always have is none, and one that they no longer always have is a break', async () => {
  const before = await interfaces()
  const always = 'management Project.name is always given'
  expect(before).toContain(always)
  const fewer = before.filter((line) => line !== always)
  expect(breaks(fewer, before)).toEqual([])
  expect(breaks(before, fewer)).toEqual([`gone: ${always}`])
  // Prices are also sent.
  expect(before).toContain('management Price.input is required')
})
