import { expect, test } from 'bun:test'
import { refusalOf } from '../../test/parts/refused.ts'
import {
  allowsModel,
  allowsSource,
  checkModels,
  checkSources,
  createAllowlist,
  createAllowlistPool,
  parsePattern,
  rangesOf,
  sourceFailure,
} from './allowlist.ts'
import type { Caller } from './caller.ts'

const models = ['openai/gpt-5.6', 'openai/gpt-5.6-mini', 'openai-eu/gpt-5.6', 'acme/large', 'acme/team/small']

function allowed(...lists: readonly (readonly string[])[]): string[] {
  const allow = lists.map(createAllowlist)
  return models.filter((id) => allowsModel(allow, id))
}

test('accepts ids and patterns ending in a star behind the first slash, and nothing else', () => {
  const right = ['openai/gpt-5.6', 'openai/*', 'openai/gpt-*', 'a/b:c@d+e_f', 'acme/team/*']
  for (const text of right) expect(parsePattern(text)).toBe(text)
  const wrong = ['', '*', '/', '/*', 'openai', 'openai/', 'openai*', 'openai/g*t', '*/gpt-5.6', 'openai/**', 'a b/*']
  for (const text of [...wrong, 'openai/*\n', ' openai/*', 'open\u0000ai/*']) expect(parsePattern(text)).toBeUndefined()
})

test('a missing list allows every model, an empty one none', () => {
  expect(allowed()).toEqual(models)
  expect(allowed([])).toEqual([])
})

test('an id allows itself, a pattern everything below its slash', () => {
  expect(allowed(['openai/gpt-5.6'])).toEqual(['openai/gpt-5.6'])
  expect(allowed(['openai/*'])).toEqual(['openai/gpt-5.6', 'openai/gpt-5.6-mini'])
  expect(allowed(['acme/*'])).toEqual(['acme/large', 'acme/team/small'])
  expect(allowed(['acme/team/*'])).toEqual(['acme/team/small'])
})

test('a pattern with the beginning of a name allows what begins so', () => {
  expect(allowed(['openai/gpt-5.6*'])).toEqual(['openai/gpt-5.6', 'openai/gpt-5.6-mini'])
  expect(allowed(['openai/gpt-5.6-*', 'acme/l*'])).toEqual(['openai/gpt-5.6-mini', 'acme/large'])
})

test('both lists must allow a model, in any order', () => {
  const [project, key] = [['openai/*'], ['openai/gpt-5.6', 'acme/*']]
  expect(allowed(project, key)).toEqual(['openai/gpt-5.6'])
  expect(allowed(key, project)).toEqual(['openai/gpt-5.6'])
  expect(allowed(project, [])).toEqual([])
})

test('an invalid entry is refused with its index', async () => {
  expect(checkModels([])).toBeUndefined()
  expect(checkModels(['openai/*', 'acme/large'])).toBeUndefined()
  expect(await refusalOf(() => checkModels(['openai/*', 'gpt-*']))).toMatchObject({
    code: 'INVALID_REQUEST',
    facts: { param: 'models[1]' },
  })
  expect(checkModels(Array(200).fill('a/b'))).toBeUndefined()
  expect(await refusalOf(() => checkModels(Array(201).fill('a/b')))).toMatchObject({ facts: { param: 'models' } })
})

test('equal lists share memory, and an unreadable one throws', () => {
  const listOf = createAllowlistPool()
  expect(listOf('["a/b"]')).toBe(listOf('["a/b"]') as never)
  expect(listOf('["a/c"]')).not.toBe(listOf('["a/b"]') as never)
  expect(listOf(null)).toBeUndefined()
  for (const broken of ['', '{}', 'null', '[1]']) expect(() => listOf(broken)).toThrow()
})

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
    priceList: undefined,
    sources: rangesOf(sources),
  }
}

test('T5: a key without addresses is accepted from anywhere, even from an unknown address', () => {
  for (const address of ['203.0.113.7', '::1', undefined])
    expect(allowsSource(callerFrom(undefined), address)).toBe(true)
})

test('T5: a key with addresses is accepted from those only', () => {
  const caller = callerFrom(['10.0.0.0/8', '203.0.113.7', '2001:db8::/32'])
  for (const address of ['10.0.0.0', '10.255.255.255', '::ffff:10.1.2.3', '203.0.113.7', '2001:db8:ffff::1']) {
    expect(allowsSource(caller, address)).toBe(true)
  }
  for (const address of ['9.255.255.255', '11.0.0.0', '203.0.113.8', '2001:db9::', '::a00:1', '', 'x', undefined]) {
    expect(allowsSource(caller, address)).toBe(false)
  }
})

test('an entry that is no address or range is refused with its index', async () => {
  expect(checkSources(undefined)).toBeUndefined()
  expect(checkSources(['10.0.0.0/8', '::1'])).toBeUndefined()
  expect(await refusalOf(() => checkSources([]))).toMatchObject({
    code: 'INVALID_REQUEST',
    facts: { param: 'sources' },
  })
  expect(await refusalOf(() => checkSources(Array(101).fill('10.0.0.0/8')))).toMatchObject({
    facts: { param: 'sources' },
  })
  for (const wrong of ['10.0.0.1/8', 'localhost', '10.0.0.0/33', '']) {
    expect(await refusalOf(() => checkSources(['::1', wrong]))).toMatchObject({ facts: { param: 'sources[1]' } })
  }
})

test('the refusal is a 403 with the key and the address, without the ranges', () => {
  const failure = sourceFailure(callerFrom(['10.0.0.0/8']), '203.0.113.7')
  expect(failure.code).toBe('FORBIDDEN')
  expect(failure.message).toContain('"office" from 203.0.113.7')
  expect(failure.message).not.toContain('10.0.0.0')
})
