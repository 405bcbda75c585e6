"""Sends servers that take the place of DynamoDB and SQS the same requests, and prints where they answer
differently, as a Markdown table: one column a server, one row a question.

    differences.py NAME=DYNAMODB_URL,SQS_URL NAME=DYNAMODB_URL,SQS_URL …

The requests are about behaviour that the engine relies on, or takes care not to rely on. SQS_URL may be empty.
`scripts/test-against --differences` starts the servers and runs this.
"""

import collections
import concurrent.futures
import json
import sys
import time
import uuid

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

DYNAMODB, SQS = [], []


def question(about, text):
    """Registers a function that asks a server: its answer is told in a few words."""
    return lambda function: about.append((text, function))


def client(service, url, region="us-east-1"):
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=32, read_timeout=30)
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return Session().create_client(service, endpoint_url=url, region_name=region, config=config, **keys)


def refusal(call, **arguments):
    """The code of the error that a call meets."""
    try:
        call(**arguments)
        return "accepted"
    except ClientError as error:
        return error.response["Error"]["Code"].rsplit(".", 1)[-1]


# --- DynamoDB ----------------------------------------------------------------------------------------

def n(value):
    return {"N": str(value)}


def s(value):
    return {"S": value}


class Table:
    """A table of its own, with an index over what has the attribute `due`."""

    def __init__(self, url):
        self.url = url
        self.db = client("dynamodb", url)
        self.name = "differences-" + uuid.uuid4().hex
        created = self.create()
        self.created = created["TableDescription"]["TableStatus"]
        self.db.get_waiter("table_exists").wait(TableName=self.name, WaiterConfig={"Delay": 1})

    def create(self):
        keys = [("pk", "HASH"), ("sk", "RANGE")]
        schema = [{"AttributeName": name, "KeyType": kind} for name, kind in keys]
        index = {"IndexName": "due", "KeySchema": [{"AttributeName": "due", "KeyType": "HASH"}],
                 "Projection": {"ProjectionType": "KEYS_ONLY"}}
        attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "due")]
        return self.db.create_table(TableName=self.name, KeySchema=schema, AttributeDefinitions=attributes,
                                    BillingMode="PAY_PER_REQUEST", GlobalSecondaryIndexes=[index])

    def key(self, sk, pk="p"):
        return {"pk": s(pk), "sk": s(sk)}

    def put(self, sk, pk="p", **attributes):
        return self.db.put_item(TableName=self.name, Item=self.key(sk, pk) | attributes)

    def query(self, pk="p", **more):
        return self.db.query(TableName=self.name, KeyConditionExpression="pk = :p",
                             ExpressionAttributeValues={":p": s(pk)}, **more)

    def put_new(self, sk, **more):
        return {"Put": {"TableName": self.name, "Item": self.key(sk) | {"v": n(1)},
                        "ConditionExpression": "attribute_not_exists(pk)"} | more}


@question(DYNAMODB, "state of a table when its creation is answered")
def _(table):
    return table.created


@question(DYNAMODB, "creating a table that is there")
def _(table):
    return refusal(table.create)


@question(DYNAMODB, "a table of one region, looked for in another")
def _(table):
    other = client("dynamodb", table.url, "eu-west-1")
    return refusal(other.describe_table, TableName=table.name).replace("accepted", "found")


@question(DYNAMODB, "items of 100 kB on the first page of a query")
def _(table):
    for number in range(25):
        table.put(f"{number:02}", "large", text=s("x" * 100_000))
    return len(table.query("large")["Items"])


@question(DYNAMODB, "`Limit` equal to the number of items: says that there is more")
def _(table):
    for number in range(3):
        table.put(str(number), "few")
    return "LastEvaluatedKey" in table.query("few", Limit=3)


@question(DYNAMODB, "`TransactGetItems` with a projection: attributes of an item; what a missing item is")
def _(table):
    table.put("projected", v=n(1), w=n(2))
    get = lambda sk: {"Get": {"TableName": table.name, "Key": table.key(sk), "ProjectionExpression": "v"}}
    found, missing = table.db.transact_get_items(TransactItems=[get("projected"), get("nothing")])["Responses"]
    return f"{','.join(sorted(found['Item']))}; {json.dumps(missing)}"


@question(DYNAMODB, "a cancelled transaction: codes of its reasons, in order; whether the item is shown")
def _(table):
    table.put("taken", v=n(7))
    writes = [table.put_new("new"), table.put_new("taken", ReturnValuesOnConditionCheckFailure="ALL_OLD")]
    try:
        table.db.transact_write_items(TransactItems=writes)
        return "accepted"
    except ClientError as error:
        reasons = error.response["CancellationReasons"]
        return f"{','.join(reason['Code'] for reason in reasons)}; {reasons[1].get('Item', {}).get('v')}"


@question(DYNAMODB, "a transaction sent again with its token; with its token and other content")
def _(table):
    token = uuid.uuid4().hex
    send = lambda sk: refusal(table.db.transact_write_items, ClientRequestToken=token, TransactItems=[table.put_new(sk)])
    return ", ".join([send("once"), send("once"), send("other")])


@question(DYNAMODB, "a transaction that names an item twice; of 101 items")
def _(table):
    send = lambda writes: refusal(table.db.transact_write_items, TransactItems=writes)
    return f"{send([table.put_new('x'), table.put_new('x')])}; {send([table.put_new(f'm{i}') for i in range(101)])}"


@question(DYNAMODB, "16 clients transacting on the same two items, 320 times: codes that came")
def _(table):
    add = lambda sk: {"Update": {"TableName": table.name, "Key": table.key(sk), "UpdateExpression": "ADD c :one",
                                 "ExpressionAttributeValues": {":one": n(1)}}}

    def once(_):
        try:
            table.db.transact_write_items(TransactItems=[add("hot-1"), add("hot-2")])
            return ["accepted"]
        except ClientError as error:
            reasons = error.response.get("CancellationReasons", [error.response["Error"]])
            return [reason["Code"] for reason in reasons if reason["Code"] != "None"][:1]

    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        codes = {code for codes in clients.map(once, range(320)) for code in codes}
    return ", ".join(sorted(codes))


@question(DYNAMODB, "`BatchGetItem`: order of the answers as asked; of 101 keys; of a key twice")
def _(table):
    names = [f"b{number:02}" for number in range(20)]
    for name in names:
        table.put(name)
    get = lambda names: {"RequestItems": {table.name: {"Keys": [table.key(name) for name in names]}}}
    got = table.db.batch_get_item(**get(names[::-1]))["Responses"][table.name]
    in_order = [item["sk"]["S"] for item in got] == names[::-1]
    most = refusal(table.db.batch_get_item, **get([f"n{number}" for number in range(101)]))
    return f"{in_order}; {most}; {refusal(table.db.batch_get_item, **get(['b00', 'b00']))}"


@question(DYNAMODB, "an index is read as soon as it is written, 50 times of 50; a consistent read of it")
def _(table):
    seen = 0
    for number in range(50):
        table.put(f"due-{number}", due=s(f"minute-{number}"))
        seen += table.db.query(TableName=table.name, IndexName="due", KeyConditionExpression="due = :d",
                               ExpressionAttributeValues={":d": s(f"minute-{number}")})["Count"]
    consistent = refusal(table.db.query, TableName=table.name, IndexName="due", KeyConditionExpression="due = :d",
                         ExpressionAttributeValues={":d": s("minute-0")}, ConsistentRead=True)
    return f"{seen}; {consistent}"


@question(DYNAMODB, "a reserved word in an expression; a value that no expression uses")
def _(table):
    update = lambda expression, **values: refusal(
        table.db.update_item, TableName=table.name, Key=table.key("words"), UpdateExpression=expression,
        ExpressionAttributeValues=values)
    reserved = update("SET #status = :v".replace("#", ""), **{":v": n(1)})
    return f"{reserved}; {update('SET v = :v', **{':v': n(1), ':unused': n(2)})}"


@question(DYNAMODB, "an item above 400 KB; an empty set; a number of 38 digits")
def _(table):
    put = lambda **attributes: refusal(table.put, "odd", **attributes)
    digits = "12345678901234567890123456789012345678"
    kept = "refused"
    if put(v={"N": digits}) == "accepted":
        item = table.db.get_item(TableName=table.name, Key=table.key("odd"), ConsistentRead=True)["Item"]
        kept = "kept" if item["v"]["N"] == digits else "rounded"
    return f"{put(text=s('x' * 410_000))}; {put(v={'NS': []})}; {kept}"


# --- SQS ---------------------------------------------------------------------------------------------

class Queue:
    """A queue of its own whose messages are dead after two receives, and the queue for the dead."""

    def __init__(self, url):
        self.url = url
        self.sqs = client("sqs", url)
        self.name = "differences-" + uuid.uuid4().hex
        self.dead = self.sqs.create_queue(QueueName=self.name + "-dead")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
        self.queue = self.sqs.create_queue(QueueName=self.name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]

    def fresh(self):
        return self.sqs.create_queue(QueueName="differences-" + uuid.uuid4().hex)["QueueUrl"]

    def receive(self, queue, wait=0, most=10, **more):
        got = self.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=wait, MaxNumberOfMessages=most,
                                       MessageSystemAttributeNames=["All"], **more)
        return got.get("Messages", [])


@question(SQS, "address of a queue, after the server's own")
def _(queue):
    place = queue.queue.removeprefix(queue.url)
    return place.replace(queue.name, "NAME").replace(queue.url.split(":")[-1], "PORT")


@question(SQS, "creating a queue that is there with other attributes")
def _(queue):
    return refusal(queue.sqs.create_queue, QueueName=queue.name, Attributes={"VisibilityTimeout": "77"})


@question(SQS, "a queue that is not there")
def _(queue):
    return refusal(queue.sqs.send_message, QueueUrl=queue.queue + "-not", MessageBody="x")


@question(SQS, "a delay of 901 s; a message of 1.1 MB; an empty batch; a batch of 11")
def _(queue):
    url = queue.fresh()
    entries = lambda count: [{"Id": str(number), "MessageBody": "x"} for number in range(count)]
    batch = lambda count: refusal(queue.sqs.send_message_batch, QueueUrl=url, Entries=entries(count))
    delay = refusal(queue.sqs.send_message, QueueUrl=url, MessageBody="x", DelaySeconds=901)
    large = refusal(queue.sqs.send_message, QueueUrl=url, MessageBody="x" * 1_100_000)
    return f"{delay}; {large}; {batch(0)}; {batch(11)}"


@question(SQS, "a delay of 1 s: tenths of a second until a long poll receives")
def _(queue):
    url = queue.fresh()
    queue.sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=1)
    sent = time.monotonic()
    while not queue.receive(url, wait=5):
        pass
    tenths = round((time.monotonic() - sent) * 10)
    return "10 to 11" if 10 <= tenths <= 11 else f"{tenths}"


@question(SQS, "messages that a receive of 10 gives, of 30 that wait")
def _(queue):
    url = queue.fresh()
    for batch in range(3):
        entries = [{"Id": str(number), "MessageBody": str(10 * batch + number)} for number in range(10)]
        queue.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    return ",".join(str(len(queue.receive(url))) for _ in range(3))


@question(SQS, "a dead message: receives it counts when it is received in the dead-letter queue; whether its id is kept")
def _(queue):
    sent = queue.sqs.send_message(QueueUrl=queue.queue, MessageBody="poison")["MessageId"]
    for _ in range(3):
        queue.receive(queue.queue, VisibilityTimeout=0)
    [dead] = queue.receive(queue.dead, wait=5)
    return f"{dead['Attributes']['ApproximateReceiveCount']}; {dead['MessageId'] == sent}"


@question(SQS, "deleting with a handle that is none, alone; in a batch")
def _(queue):
    alone = refusal(queue.sqs.delete_message, QueueUrl=queue.queue, ReceiptHandle="nonsense")
    batch = queue.sqs.delete_message_batch(QueueUrl=queue.queue, Entries=[{"Id": "a", "ReceiptHandle": "nonsense"}])
    return f"{alone}; {','.join(entry['Code'] for entry in batch.get('Failed', [])) or 'accepted'}"


@question(SQS, "deleting with the handle of an earlier receive: the message is gone")
def _(queue):
    url = queue.fresh()
    queue.sqs.send_message(QueueUrl=url, MessageBody="x")
    [first] = queue.receive(url, VisibilityTimeout=0)
    queue.receive(url, VisibilityTimeout=0)
    code = refusal(queue.sqs.delete_message, QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    return f"{code}; {not queue.receive(url)}"


@question(SQS, "counts of a queue with one message waiting, one hidden, one delayed")
def _(queue):
    url = queue.fresh()
    for delay in (0, 0, 600):
        queue.sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    queue.receive(url, most=1)
    names = ["", "NotVisible", "Delayed"]
    names = ["ApproximateNumberOfMessages" + name for name in names]
    counts = queue.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return ", ".join(counts[name] for name in names)


# --- answers -----------------------------------------------------------------------------------------

def ask(kind, url, questions):
    if not url:
        return {}
    place = kind(url)
    answers = {}
    for text, function in questions:
        try:
            answers[text] = str(function(place))
        except Exception as error:  # An answer like any other: the server cannot do it.
            answers[text] = f"{type(error).__name__}: {error}"
    return answers


def main(arguments):
    servers = collections.OrderedDict(argument.split("=", 1) for argument in arguments)
    answers = {}
    for name, urls in servers.items():
        dynamodb, sqs = urls.split(",")
        answers[name] = ask(Table, dynamodb, DYNAMODB) | ask(Queue, sqs, SQS)
    same = 0
    print("| | " + " | ".join(servers) + " |")
    print("|---" * (len(servers) + 1) + "|")
    for text, _ in DYNAMODB + SQS:
        told = [answers[name].get(text) for name in servers]
        if len({answer for answer in told if answer is not None}) == 1:
            same += 1
            continue
        cells = ["(not asked)" if answer is None else answer.replace("|", "\\|") for answer in told]
        print(f"| {text} | " + " | ".join(cells) + " |")
    print(f"\n{len(DYNAMODB + SQS)} questions, {same} answered alike")


main(sys.argv[1:])
