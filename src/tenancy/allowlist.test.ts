import { expect, test } from 'bun:test'
import { allowsModel, checkModels, createAllowlist, createAllowlistPool, parsePattern } from './allowlist.ts'

const models = ['openai/gpt-5.6', 'openai/gpt-5.6-mini', 'openai-eu/gpt-5.6', 'acme/large', 'acme/team/small']

function allowed(...lists: readonly (readonly string[])[]): string[] {
  const allow = lists.map(createAllowlist)
  return models.filter((id) => allowsModel(allow, id))
}

test('reads ids and patterns that end in a slash and a star, and nothing else', () => {
  for (const text of ['openai/gpt-5.6', 'openai/*', 'a/b:c@d+e_f', 'acme/team/*']) expect(parsePattern(text)).toBe(text)
  const wrong = ['', '*', '/', '/*', 'openai', 'openai/', 'openai*', 'openai/gpt-*', '*/gpt-5.6', 'openai/**', 'a b/*']
  for (const text of [...wrong, 'openai/*\n', ' openai/*', 'open\u0000ai/*']) expect(parsePattern(text)).toBeUndefined()
})

test('no list allows everything, an empty one nothing', () => {
  expect(allowed()).toEqual(models)
  expect(allowed([])).toEqual([])
})

test('an id allows itself, a pattern what stands below its slash and not what merely begins alike', () => {
  expect(allowed(['openai/gpt-5.6'])).toEqual(['openai/gpt-5.6'])
  expect(allowed(['openai/*'])).toEqual(['openai/gpt-5.6', 'openai/gpt-5.6-mini'])
  expect(allowed(['acme/*'])).toEqual(['acme/large', 'acme/team/small'])
  expect(allowed(['acme/team/*'])).toEqual(['acme/team/small'])
})

test('of two lists both must allow it, in any order', () => {
  const [project, key] = [['openai/*'], ['openai/gpt-5.6', 'acme/*']]
  expect(allowed(project, key)).toEqual(['openai/gpt-5.6'])
  expect(allowed(key, project)).toEqual(['openai/gpt-5.6'])
  expect(allowed(project, [])).toEqual([])
})

test('a wrong list is refused by the place in it', () => {
  expect(checkModels([])).toBeUndefined()
  expect(checkModels(['openai/*', 'acme/large'])).toBeUndefined()
  expect(checkModels(['openai/*', 'gpt-*'])).toMatchObject({ code: 'INVALID_REQUEST', facts: { param: 'models[1]' } })
  expect(checkModels(Array(200).fill('a/b'))).toBeUndefined()
  expect(checkModels(Array(201).fill('a/b'))).toMatchObject({ facts: { param: 'models' } })
})

test('equal lists are one in memory, and one that cannot be read is a defect and not every model', () => {
  const listOf = createAllowlistPool()
  expect(listOf('["a/b"]')).toBe(listOf('["a/b"]') as never)
  expect(listOf('["a/c"]')).not.toBe(listOf('["a/b"]') as never)
  expect(listOf(null)).toBeUndefined()
  for (const broken of ['', '{}', 'null', '[1]']) expect(() => listOf(broken)).toThrow()
})
