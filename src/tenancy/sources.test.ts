import { expect, test } from 'bun:test'
import type { Caller } from './caller.ts'
import { allowsSource, checkSources, rangesOf, sourceFailure } from './sources.ts'

function callerFrom(sources: readonly string[] | undefined): Caller {
  return {
    keyId: 'key_1',
    keyName: 'office',
    projectId: 'prj_1',
    projectName: 'p',
    workspaceId: 'ws_1',
    workspaceName: 'w',
    allow: [],
    limits: [],
    sharesRoutes: false,
    sources: rangesOf(sources),
  }
}

test('T5: a key without addresses is good anywhere, even from nowhere', () => {
  for (const address of ['203.0.113.7', '::1', undefined])
    expect(allowsSource(callerFrom(undefined), address)).toBe(true)
})

test('T5: a key with addresses is good from those and from no others', () => {
  const caller = callerFrom(['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'])
  for (const address of ['10.0.0.0', '10.255.255.255', '::ffff:10.1.2.3', '203.0.113.7', '2001:db8:ffff::1']) {
    expect(allowsSource(caller, address)).toBe(true)
  }
  for (const address of ['9.255.255.255', '11.0.0.0', '203.0.113.8', '2001:db9::', '::a00:1', '', 'x', undefined]) {
    expect(allowsSource(caller, address)).toBe(false)
  }
})

test('what is no address or range is refused by the place in the list', () => {
  expect(checkSources(undefined)).toBeUndefined()
  expect(checkSources(['10.0.0.0/8', '::1'])).toBeUndefined()
  expect(checkSources([])).toMatchObject({ code: 'INVALID_REQUEST', facts: { param: 'sources' } })
  expect(checkSources(Array(101).fill('10.0.0.0/8'))).toMatchObject({ facts: { param: 'sources' } })
  for (const wrong of ['10.0.0.1/8', 'localhost', '10.0.0.0/33', '']) {
    expect(checkSources(['::1', wrong])).toMatchObject({ facts: { param: 'sources[1]' } })
  }
})

test('the refusal is a 403 that names the key and the address, and none of the ranges', () => {
  const failure = sourceFailure(callerFrom(['10.0.0.0/8']), '203.0.113.7')
  expect(failure.code).toBe('FORBIDDEN')
  expect(failure.message).toContain('"office" from 203.0.113.7')
  expect(failure.message).not.toContain('10.0.0.0')
})
