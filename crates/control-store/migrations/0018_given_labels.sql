-- Labels that the token gives to the nodes that it admits: JSON. The default gives none.
ALTER TABLE enrolment_tokens ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
-- Labels that the node asked for and its token does not give: JSON. NULL unless the node waits for an approval;
-- until then it gets no orders.
ALTER TABLE nodes ADD COLUMN requested_labels TEXT;
-- Labels that a node needs to get the private key: JSON. '{}' is every node of the project.
ALTER TABLE certificates ADD COLUMN node_labels TEXT NOT NULL DEFAULT '{}';
