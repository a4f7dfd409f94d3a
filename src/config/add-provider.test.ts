// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references as files write them

import { expect, test } from 'bun:test'
import { addProvider, type Insertion } from './add-provider.ts'

const acme = {
  id: 'acme',
  dialect: 'openai-chat',
  baseUrl: 'https://api.acme.example/v1',
  keyReference: '${ACME_API_KEY}',
}

function added(text: string): Insertion {
  const insertion = addProvider(text, acme)
  if (typeof insertion === 'string') throw new Error(insertion)
  return insertion
}

const entry = (indent: string) =>
  ['- id: acme', '  dialect: openai-chat', '  base_url: https://api.acme.example/v1', '  api_key: ${ACME_API_KEY}']
    .map((line) => `${indent}${line}\n`)
    .join('')

test('a new file, and one without providers, get the section at the end', () => {
  expect(added('').text).toBe(`providers:\n${entry('  ')}`)
  expect(added('# mine\nserver: { port: 1 }').text).toBe(`# mine\nserver: { port: 1 }\nproviders:\n${entry('  ')}`)
  expect(added('# only words\n').text).toBe(`# only words\nproviders:\n${entry('  ')}`)
})

test('the entry follows the last one with its indentation, and no other character changes', () => {
  const before = `# about us
providers:   # who hosts

- id:    beta      # spaced oddly
  dialect: 'openai-chat'
  base_url: "https://beta.example/v1"   # the end

# about models
models: [ ]
`
  const { text, line } = added(before)
  expect(text).toBe(before.replace('# the end\n', `# the end\n${entry('')}`))
  expect(line).toBe(7)
})

test('without a line end after the last entry there is one before the new entry', () => {
  const before = 'providers:\n    - { id: beta, dialect: sandbox }'
  expect(added(before).text).toBe(`${before}\n${entry('    ')}`)
})

test('a section with nothing below it is filled', () => {
  expect(added('providers: # none yet\nmodels: []\n').text).toBe(`providers: # none yet\n${entry('  ')}models: []\n`)
})

test('an empty list in brackets is filled', () => {
  expect(added('providers: [ ]  # none yet\nmodels: []\n').text).toBe(
    `providers:  # none yet\n${entry('  ')}models: []\n`,
  )
})

test('an id that is there already, and a file in braces, are left alone', () => {
  expect(addProvider('providers:\n  - id: acme\n', acme)).toBe('repeated')
  expect(addProvider('providers: [{ id: acme }]\n', acme)).toBe('repeated')
  expect(addProvider('{ "providers": [] }\n', acme)).toBe('flow')
  expect(addProvider('providers: [{ id: beta }]\n', acme)).toBe('flow')
})
