import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { estimateTokens } from './token-estimate.ts'

// The known answers are those of a real vocabulary, on text that was not chosen for the purpose: this repository's own files,
// and a paragraph in each of several languages.

const root = join(import.meta.dir, '..', '..')
const file = (path: string): string => readFileSync(join(root, path), 'utf8')

const samples: readonly [name: string, text: string][] = [
  ['English prose', file('docs/decisions/0002-one-package-one-process.md')],
  ['a licence', file('LICENSE')],
  ['Markdown with tables', file('ARCHITECTURE.md')],
  ['TypeScript', file('src/pipeline/run.ts')],
  ['TypeScript, dense', file('src/wire/json.ts')],
  ['indented JSON', file('tollgate.schema.json')],
  ['JSON on one line', JSON.stringify(JSON.parse(file('tollgate.schema.json')))],
  ['a list of numbers', Array.from({ length: 300 }, (_, at) => (at * 7919) % 100003).join(', ')],
  [
    'German',
    'Ein Gateway stellt viele Modelle hinter eine Adresse. Wer ruft, braucht nur einen Schlüssel und kann jedes Modell benutzen, gleich welcher Anbieter es betreibt. Ist das Guthaben leer, sagt die Fehlermeldung, was zu tun ist.',
  ],
  [
    'Russian',
    'Шлюз ставит множество моделей за одним адресом. Вызывающему нужен только один ключ, и он может использовать любую модель, кто бы её ни предоставлял. Каждый запрос оплачивается из кошелька.',
  ],
  [
    'Chinese',
    '人工智能网关把许多模型放在一个地址后面。调用者只需要一把钥匙，就可以使用任何一个模型，无论它来自哪一家提供商。每一次调用都会从钱包里扣款，余额不足时会返回明确的错误。',
  ],
  [
    'Japanese',
    'このゲートウェイは、多くのモデルを一つのアドレスの後ろに置きます。呼び出し側は一つの鍵だけで、どのモデルでも使うことができます。障害が起きたときは、別の経路が静かに試されます。',
  ],
  [
    'Korean',
    '게이트웨이는 많은 모델을 하나의 주소 뒤에 둡니다. 호출자는 하나의 키만 있으면 어떤 모델이든 사용할 수 있습니다.',
  ],
  ['Hindi', 'गेटवे कई मॉडलों को एक पते के पीछे रखता है। कॉल करने वाले को केवल एक कुंजी की आवश्यकता होती है।'],
]

test.each(samples)('%s is counted within 15 %% of a real vocabulary', (_, text) => {
  const known = encode(text).length
  const counted = estimateTokens(text)
  expect(counted).toBeGreaterThanOrEqual(known * 0.85)
  expect(counted).toBeLessThanOrEqual(known * 1.15)
})

test('an empty text has no tokens, and more text never has fewer', () => {
  expect(estimateTokens('')).toBe(0)
  let text = ''
  let before = 0
  for (const piece of ['hello', ' there', ', 12345', ' 世界', '\n\n', '{"a":1}']) {
    text += piece
    const counted = estimateTokens(text)
    expect(counted).toBeGreaterThanOrEqual(before)
    before = counted
  }
})
